-- The unregistered apps with the most tokens; private, for the warehouse's copy of the report.
SELECT
  CAST(u.app_id AS VARCHAR) AS app_id,
  CAST(sum(u.requests) AS VARCHAR) AS requests,
  CAST(sum(u.prompt_tokens) + sum(u.completion_tokens) AS VARCHAR) AS tokens
FROM usage_daily AS u
ANTI JOIN registry AS r ON r.app_id = u.app_id
WHERE u.day <= getvariable('last_day') AND u.app_id <> $unattributed
GROUP BY u.app_id
ORDER BY sum(u.prompt_tokens) + sum(u.completion_tokens) DESC, u.app_id
LIMIT 100;
