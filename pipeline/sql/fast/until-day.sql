-- Every day is marked.
CREATE MACRO snapshot.fast.usage_until(last_day) AS TABLE
SELECT r.app_id, r.requests, r.tokens AS prompt_tokens, fast.none_of(r.tokens) AS completion_tokens
FROM fast.running AS r
WHERE r.day = least(CAST(last_day AS DATE), fast.data_through());
