-- Did suspicion.sql find anything?
SELECT count(*) > 0 AS suspicious
FROM repeated;
