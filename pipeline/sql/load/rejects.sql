-- How many rows of the day were read, how many of them are rejected, and whether BIGINT is too narrow for an app.
SELECT
  coalesce(CAST(sum(c.rows) AS BIGINT), 0) AS rows_read,
  coalesce(CAST(sum(c.rows) FILTER (c.app_id IS NULL) AS BIGINT), 0) AS rows_rejected,
  coalesce(
    max(greatest(c.prompt_tokens, c.completion_tokens)) FILTER (c.app_id IS NOT NULL) > 9223372036854775807, false
  ) AS wide
FROM counted AS c;
