-- One row per UTC day from the floor to the last day, to tell a missing day from one without traffic.
INSERT INTO snapshot.coverage
WITH calendar AS (
  SELECT CAST(unnest(range(getvariable('floor'), CAST($data_through AS DATE) + 1, INTERVAL 1 DAY)) AS DATE) AS day
),
published AS (
  SELECT d.day, sum(d.requests) AS requests, sum(d.prompt_tokens) + sum(d.completion_tokens) AS tokens
  FROM snapshot.app_daily AS d
  GROUP BY d.day
)
SELECT
  c.day,
  CASE
    WHEN w.day IS NULL THEN 'missing'
    WHEN w.rows_rejected > 0 THEN 'partial'
    WHEN EXISTS (SELECT 1 FROM snapshot.restatements AS r WHERE r.day = c.day AND r.cause = 'figures') THEN 'restated'
    ELSE 'complete'
  END,
  coalesce(p.requests, 0),
  coalesce(p.tokens, 0)
FROM calendar AS c
LEFT JOIN warehouse.days AS w ON w.day = c.day AND w.rows_read > 0
LEFT JOIN published AS p ON p.day = c.day
ORDER BY c.day;
