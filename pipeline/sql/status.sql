-- Summary of the current snapshot.
SELECT
  strftime(m.as_of AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ') AS as_of,
  CAST(m.first_day AS VARCHAR) AS first_day,
  CAST(m.data_through AS VARCHAR) AS data_through,
  (SELECT count(*) FROM current.apps) AS apps,
  (SELECT count(*) FROM current.app_daily) AS app_days,
  coalesce(list(CAST(c.day AS VARCHAR) ORDER BY c.day) FILTER (c.status = 'missing'), []) AS days_missing,
  coalesce(list(CAST(c.day AS VARCHAR) ORDER BY c.day) FILTER (c.status = 'partial'), []) AS days_partial,
  coalesce(list(CAST(c.day AS VARCHAR) ORDER BY c.day) FILTER (c.status = 'restated'), []) AS days_restated
FROM current.meta AS m
LEFT JOIN current.coverage AS c ON c.day >= m.first_day
GROUP BY ALL;
