-- How many lines of a file its rows and broken lines come from.
SELECT CAST(coalesce(sum(s.lines), 0) AS BIGINT) AS lines
FROM staged AS s
WHERE s.file = $file;
