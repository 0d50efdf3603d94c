-- An app has at most one row per day.
SELECT d.day, d.app_id, count(*) AS rows
FROM snapshot.app_daily AS d
GROUP BY d.day, d.app_id
HAVING count(*) > 1
ORDER BY ALL;
