-- The apps that the staged rows name, those with the most rows first.
SELECT s.app, count(*) AS rows
FROM staged AS s
WHERE s.app_id IS NULL AND nullif(trim(s.app), '') IS NOT NULL
GROUP BY s.app
ORDER BY rows DESC, s.app;
