-- No request or token count is negative.
SELECT 'app_daily' AS place, d.day, d.least_number
FROM day_totals AS d
WHERE d.least_number < 0
UNION ALL
SELECT 'rankings', r.end_date, least(r.total_requests, r.total_tokens)
FROM snapshot.rankings AS r
WHERE r.total_requests < 0 OR r.total_tokens < 0
ORDER BY ALL;
