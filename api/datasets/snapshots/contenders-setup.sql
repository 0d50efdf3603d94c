-- What a connection needs to ask the macros about a few apps only: names that stand before those of the snapshot, whose
-- own are called by their full names. The table is filled for each question.
CREATE TEMP TABLE apps AS FROM apps LIMIT 0;

CREATE TEMP MACRO usage_between(first_day, last_day) AS TABLE
SELECT u.app_id, u.requests, u.prompt_tokens, u.completion_tokens
FROM "app-rankings".main.usage_between(first_day, last_day) AS u
SEMI JOIN temp.apps AS a ON a.app_id = u.app_id;
