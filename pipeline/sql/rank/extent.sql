-- First and last completed day with usage, whether an app may exceed 2^63 tokens on a day, and the number of days that hold
-- about $rows_at_once app-days together.
SELECT
  CAST(min(d.day) AS VARCHAR) AS first_day,
  CAST(max(d.day) AS VARCHAR) AS data_through,
  coalesce(max(d.tokens_read) > 9223372036854775807, false) AS wide,
  greatest(1, $rows_at_once * count(*) // greatest(1, (SELECT count(*) FROM usage_daily))) AS days_at_once
FROM days AS d
WHERE d.day <= getvariable('last_day') AND d.rows_read > d.rows_rejected;
