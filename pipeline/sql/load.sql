-- The queries of the stage load.

-- name: counted-days
-- The counted days with the fingerprint of their files. It is empty for a day with too many rejected rows, which are kept in
-- the quarantine all the same.
SELECT CAST(d.day AS VARCHAR) AS day, d.fingerprint
FROM days AS d
UNION ALL
SELECT DISTINCT CAST(q.day AS VARCHAR), ''
FROM quarantine AS q
WHERE NOT EXISTS (FROM days AS d WHERE d.day = q.day);

-- name: day-counts
-- For each day being counted: rows read, rows rejected, and whether some app may pass 2^63.
SELECT
  CAST(d.day AS VARCHAR) AS day,
  CAST(d.rows_read AS BIGINT) AS rows_read,
  CAST(d.rows_rejected AS BIGINT) AS rows_rejected,
  d.wide
FROM day_totals AS d
ORDER BY d.day;

-- name: too-large
-- Apps whose tokens of a day do not fit into BIGINT.
SELECT
  CAST(c.day AS VARCHAR) AS day,
  CAST(c.app_id AS VARCHAR) AS app_id,
  any_value(n.app_name) AS app_name,
  CAST(greatest(sum(c.prompt_tokens), sum(c.completion_tokens)) AS VARCHAR) AS tokens
FROM counted AS c
LEFT JOIN app_names AS n ON n.app_id = c.app_id
WHERE c.app_id IS NOT NULL
GROUP BY c.day, c.app_id
HAVING greatest(sum(c.prompt_tokens), sum(c.completion_tokens)) > 9223372036854775807
ORDER BY c.day, c.app_id;

-- name: quarantine
-- Stores the rejected rows of the days being counted.
INSERT INTO quarantine BY NAME
SELECT r.day, r.file, r.row, r.reason, r.payload, r.rows
FROM rejected AS r;

-- name: common-violations
-- The most common violations in a day's quarantine, for the message of a failed run.
SELECT q.file, q.reason, CAST(sum(q.rows) AS BIGINT) AS rows, min(q.row) AS first_row, min_by(q.payload, q.row) AS example
FROM quarantine AS q
WHERE q.day = CAST($day AS DATE)
GROUP BY q.file, q.reason
ORDER BY rows DESC, q.file, q.reason
LIMIT 3;

-- name: report
-- Totals of the days between the floor and the last completed day, for the run's report, with rejected rows by reason. Numbers
-- that may exceed 2^53 are text.
WITH reasons AS (
  SELECT q.reason, CAST(sum(q.rows) AS BIGINT) AS rows
  FROM quarantine AS q
  WHERE q.day <= getvariable('last_day')
  GROUP BY q.reason
),
providers AS (
  SELECT
    p.provider,
    CAST(sum(p.requests) AS BIGINT) AS requests,
    CAST(sum(p.requests_without_tokens) AS BIGINT) AS requests_without_tokens,
    CAST(sum(p.rows_failed) AS BIGINT) AS rows_failed
  FROM usage_by_provider AS p
  WHERE p.day <= getvariable('last_day')
  GROUP BY p.provider
)
SELECT
  count(*) AS days,
  coalesce(CAST(sum(d.rows_read) AS BIGINT), 0) AS rows_read,
  coalesce(CAST(sum(d.rows_rejected) AS BIGINT), 0) AS rows_rejected,
  coalesce(CAST(sum(d.rows_duplicate) AS BIGINT), 0) AS rows_duplicate,
  coalesce(CAST(sum(d.rows_conflicting) AS BIGINT), 0) AS rows_conflicting,
  coalesce(CAST(sum(d.rows_without_tokens) AS BIGINT), 0) AS rows_without_tokens,
  coalesce((SELECT CAST(sum(p.rows_failed) AS BIGINT) FROM providers AS p), 0) AS rows_failed_without_tokens,
  CAST(coalesce(sum(d.tokens_read), 0) AS VARCHAR) AS tokens_read,
  CAST(coalesce(sum(d.tokens_rejected), 0) AS VARCHAR) AS tokens_rejected,
  CAST(coalesce(sum(d.tokens_duplicate), 0) AS VARCHAR) AS tokens_duplicate,
  coalesce(
    (SELECT list({ reason: r.reason, rows: r.rows } ORDER BY r.rows DESC, r.reason) FROM reasons AS r), []
  ) AS reject_reasons,
  coalesce(
    (
      SELECT list(
        { provider: p.provider, requests: p.requests, requests_without_tokens: p.requests_without_tokens }
        ORDER BY p.requests_without_tokens DESC, p.provider
      )
      FROM providers AS p
      WHERE p.provider IS NOT NULL
    ),
    []
  ) AS providers
FROM days AS d
WHERE d.day <= getvariable('last_day');
