-- Does a staged row name its app?
SELECT count(s.app) > 0 AS named
FROM staged AS s;
