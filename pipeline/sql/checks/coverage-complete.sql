-- Coverage has one row for every day from the floor to the last day, with the totals of app_daily.
WITH calendar AS (
  SELECT CAST(unnest(range(getvariable('floor'), m.data_through + 1, INTERVAL 1 DAY)) AS DATE) AS day
  FROM snapshot.meta AS m
)
SELECT coalesce(k.day, c.day) AS day, c.status, c.total_requests, d.requests, c.total_tokens, d.tokens
FROM calendar AS k
FULL JOIN snapshot.coverage AS c ON c.day = k.day
LEFT JOIN day_totals AS d ON d.day = k.day
WHERE k.day IS NULL
  OR c.day IS NULL
  OR c.total_requests <> coalesce(d.requests, 0)
  OR c.total_tokens <> coalesce(d.tokens, 0)
  OR (c.status = 'missing' AND d.day IS NOT NULL)
ORDER BY 1;
