-- How many rows of the day were read, and how many of them are rejected.
SELECT
  coalesce(CAST(sum(c.rows) AS BIGINT), 0) AS rows_read,
  coalesce(CAST(sum(c.rows) FILTER (c.app_id IS NULL) AS BIGINT), 0) AS rows_rejected
FROM counted AS c;
