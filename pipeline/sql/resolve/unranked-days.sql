-- The days counted by this run more than 5 % of whose tokens name no app, or one that is not registered; the worst first.
SELECT
  CAST(u.day AS VARCHAR) AS day,
  CAST(sum(u.prompt_tokens + u.completion_tokens) FILTER (r.app_id IS NULL) AS VARCHAR) AS unranked,
  CAST(sum(u.prompt_tokens + u.completion_tokens) AS VARCHAR) AS tokens
FROM usage_daily AS u
LEFT JOIN registry AS r ON r.app_id = u.app_id
WHERE u.day IN (SELECT d.day FROM days AS d WHERE d.counted_at >= getvariable('as_of'))
  AND u.day <= getvariable('last_day')
GROUP BY u.day
HAVING sum(u.prompt_tokens + u.completion_tokens) FILTER (r.app_id IS NULL) * 20
  > sum(u.prompt_tokens + u.completion_tokens)
ORDER BY
  sum(u.prompt_tokens + u.completion_tokens) FILTER (r.app_id IS NULL)
    / sum(u.prompt_tokens + u.completion_tokens) DESC,
  u.day;
