-- The totals of each day of app_daily, shared by several checks.
CREATE OR REPLACE TEMP TABLE day_totals AS
SELECT
  d.day,
  sum(d.requests) AS requests,
  sum(d.prompt_tokens) + sum(d.completion_tokens) AS tokens
FROM snapshot.app_daily AS d
GROUP BY d.day;
