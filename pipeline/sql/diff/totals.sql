-- What each of the two snapshots holds.
WITH sides AS (
  SELECT 'before' AS side, m.data_through, (SELECT count(*) FROM before.apps) AS apps FROM before.meta AS m
  UNION ALL
  SELECT 'after', m.data_through, (SELECT count(*) FROM after.apps) FROM after.meta AS m
),
usage AS (
  SELECT 'before' AS side, d.requests, CAST(d.prompt_tokens AS HUGEINT) + d.completion_tokens AS tokens
  FROM before.app_daily AS d
  UNION ALL
  SELECT 'after', d.requests, CAST(d.prompt_tokens AS HUGEINT) + d.completion_tokens
  FROM after.app_daily AS d
)
SELECT
  s.side,
  CAST(s.data_through AS VARCHAR) AS data_through,
  s.apps,
  count(u.tokens) AS app_days,
  CAST(coalesce(sum(u.requests), 0) AS VARCHAR) AS total_requests,
  CAST(coalesce(sum(u.tokens), 0) AS VARCHAR) AS total_tokens
FROM sides AS s
LEFT JOIN usage AS u ON u.side = s.side
GROUP BY s.side, s.data_through, s.apps
ORDER BY s.side DESC;
