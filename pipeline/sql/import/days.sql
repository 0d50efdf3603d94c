-- The days of the staged file.
SELECT CAST(CAST(utc_from_text(s.ts) AS DATE) AS VARCHAR) AS day, count(*) AS rows
FROM staged AS s
GROUP BY 1
ORDER BY 1;
