-- What a connection needs to ask the macros about a few apps only: names that stand before those of the snapshot. The
-- table is filled for each question.
CREATE TEMP TABLE apps AS FROM apps LIMIT 0;

CREATE TEMP MACRO usage_between(first_day, last_day) AS TABLE
SELECT d.app_id, d.requests, d.prompt_tokens, d.completion_tokens
FROM app_daily AS d
SEMI JOIN temp.apps AS a ON a.app_id = d.app_id
WHERE d.day BETWEEN CAST(first_day AS DATE) AND CAST(last_day AS DATE);
