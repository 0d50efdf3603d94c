-- Usage that the registry excludes.

-- name: totals
-- Totals of the registry and of excluded usage, for the run's report. Token totals as text. The unregistered apps with the most
-- tokens are private, for the warehouse's copy of the report.
WITH unregistered AS (
  SELECT u.app_id, u.requests, u.tokens
  FROM app_usage AS u
  ANTI JOIN registry AS r ON r.app_id = u.app_id
  WHERE u.app_id <> $unattributed
  ORDER BY u.tokens DESC, u.app_id
  LIMIT 100
)
SELECT
  (SELECT count(*) FROM registry) AS apps_registered,
  (SELECT count(*) FROM registry AS r WHERE r.alias_of IS NOT NULL) AS aliases,
  (SELECT count(*) FROM resolved AS r WHERE r.published AND r.app_id = r.canonical_id) AS apps_public,
  count(*) FILTER (r.app_id IS NULL AND u.app_id <> $unattributed) AS apps_unregistered,
  coalesce(CAST(sum(u.requests) FILTER (r.app_id IS NULL AND u.app_id <> $unattributed) AS BIGINT), 0)
    AS requests_unregistered,
  CAST(coalesce(sum(u.tokens) FILTER (r.app_id IS NULL AND u.app_id <> $unattributed), 0) AS VARCHAR)
    AS tokens_unregistered,
  coalesce(CAST(sum(u.requests) FILTER (u.app_id = $unattributed) AS BIGINT), 0) AS requests_unattributed,
  CAST(coalesce(sum(u.tokens) FILTER (u.app_id = $unattributed), 0) AS VARCHAR) AS tokens_unattributed,
  CAST(coalesce(sum(u.tokens) FILTER (NOT r.published), 0) AS VARCHAR) AS tokens_hidden,
  CAST(coalesce(sum(u.tokens) FILTER (r.published), 0) AS VARCHAR) AS tokens_published,
  coalesce(
    (
      SELECT list(
        { app_id: CAST(n.app_id AS VARCHAR), requests: CAST(n.requests AS VARCHAR), tokens: CAST(n.tokens AS VARCHAR) }
        ORDER BY n.tokens DESC, n.app_id
      )
      FROM unregistered AS n
    ),
    []
  ) AS unregistered,
  coalesce(
    (
      SELECT list(r.file || ', row ' || r.row || ': app ' || r.app_id ORDER BY r.file, r.row)
      FROM registry AS r
      WHERE r.updated_at > getvariable('as_of') AT TIME ZONE 'UTC'
    ),
    []
  ) AS dated_ahead
FROM app_usage AS u
LEFT JOIN resolved AS r ON r.app_id = u.app_id;

-- name: days
-- Days counted by this run with more than 5 % of their tokens on no app or an unregistered one; the worst first.
-- The two counts are added up apart: each fits into 64 bits, which their sum may not.
WITH totals AS (
  SELECT
    u.day,
    coalesce(sum(u.prompt_tokens) FILTER (r.app_id IS NULL), 0)
      + coalesce(sum(u.completion_tokens) FILTER (r.app_id IS NULL), 0) AS unranked,
    sum(u.prompt_tokens) + sum(u.completion_tokens) AS tokens
  FROM usage_daily AS u
  LEFT JOIN registry AS r ON r.app_id = u.app_id
  WHERE u.day IN (SELECT d.day FROM days AS d WHERE d.counted_at >= getvariable('as_of'))
    AND u.day <= getvariable('last_day')
  GROUP BY u.day
)
SELECT CAST(t.day AS VARCHAR) AS day, CAST(t.unranked AS VARCHAR) AS unranked, CAST(t.tokens AS VARCHAR) AS tokens
FROM totals AS t
WHERE t.unranked * 20 > t.tokens
ORDER BY t.unranked / t.tokens DESC, t.day;
