COMMENT ON MACRO TABLE snapshot.fast.usage_until IS 'All usage of the heads up to a day, that day included, in rows that add up to it; what is added up already stands with the prompt tokens.';

-- Whatever the length of the window, that is two days.
CREATE MACRO snapshot.fast.usage_between(first_day, last_day) AS TABLE
SELECT u.app_id, u.requests, u.prompt_tokens, u.completion_tokens
FROM fast.usage_until(last_day) AS u
UNION ALL
SELECT u.app_id, -u.requests, -u.prompt_tokens, -u.completion_tokens
FROM fast.usage_until(CAST(first_day AS DATE) - 1) AS u;
COMMENT ON MACRO TABLE snapshot.fast.usage_between IS 'As usage_between, of the heads alone: only the sum of prompt and completion tokens means anything.';
