-- What the days between the floor and the last completed day hold, for the run's report, with the rejected rows by reason.
-- Text where a number may pass 2^53.
WITH reasons AS (
  SELECT q.reason, CAST(sum(q.rows) AS BIGINT) AS rows
  FROM quarantine AS q
  WHERE q.day <= getvariable('last_day')
  GROUP BY q.reason
)
SELECT
  count(*) AS days,
  coalesce(CAST(sum(d.rows_read) AS BIGINT), 0) AS rows_read,
  coalesce(CAST(sum(d.rows_rejected) AS BIGINT), 0) AS rows_rejected,
  coalesce(CAST(sum(d.rows_duplicate) AS BIGINT), 0) AS rows_duplicate,
  coalesce(CAST(sum(d.rows_conflicting) AS BIGINT), 0) AS rows_conflicting,
  coalesce(CAST(sum(d.rows_without_tokens) AS BIGINT), 0) AS rows_without_tokens,
  CAST(coalesce(sum(d.tokens_read), 0) AS VARCHAR) AS tokens_read,
  CAST(coalesce(sum(d.tokens_rejected), 0) AS VARCHAR) AS tokens_rejected,
  CAST(coalesce(sum(d.tokens_duplicate), 0) AS VARCHAR) AS tokens_duplicate,
  coalesce(
    (SELECT list({ reason: r.reason, rows: r.rows } ORDER BY r.rows DESC, r.reason) FROM reasons AS r), []
  ) AS reject_reasons
FROM days AS d
WHERE d.day <= getvariable('last_day');
