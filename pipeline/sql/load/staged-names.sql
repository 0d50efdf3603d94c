-- Does a staged row name its app, or say by an empty text that it names none?
SELECT count(s.app) > 0 AS named
FROM staged AS s;
