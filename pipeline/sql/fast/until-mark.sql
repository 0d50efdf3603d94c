-- The marked day before, and the few days since.
CREATE MACRO snapshot.fast.usage_until(last_day) AS TABLE
SELECT r.app_id, r.requests, r.tokens AS prompt_tokens, fast.none_of(r.tokens) AS completion_tokens
FROM fast.running AS r
WHERE r.day = fast.mark_of(least(CAST(last_day AS DATE), fast.data_through()))
UNION ALL
SELECT d.app_id, d.requests, d.prompt_tokens, d.completion_tokens
FROM app_daily AS d
SEMI JOIN fast.apps AS h ON h.app_id = d.app_id
WHERE d.day > fast.mark_of(least(CAST(last_day AS DATE), fast.data_through()))
  AND d.day <= CAST(last_day AS DATE);
