-- Of each day that is being counted: how many rows were read, how many of them are rejected, and whether BIGINT may be too
-- narrow for an app.
SELECT
  CAST(c.day AS VARCHAR) AS day,
  CAST(sum(c.rows) AS BIGINT) AS rows_read,
  coalesce(CAST(sum(c.rows) FILTER (c.app_id IS NULL) AS BIGINT), 0) AS rows_rejected,
  coalesce(
    greatest(
      sum(c.prompt_tokens) FILTER (c.app_id IS NOT NULL), sum(c.completion_tokens) FILTER (c.app_id IS NOT NULL)
    ) > 9223372036854775807,
    false
  ) AS wide
FROM counted AS c
GROUP BY c.day
ORDER BY c.day;
