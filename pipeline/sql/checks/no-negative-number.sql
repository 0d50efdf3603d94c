-- No request or token count is negative. Column by column, so that DuckDB answers from the minimum of each block.
SELECT 'app_daily' AS place, d.day, d.app_id, d.requests, d.prompt_tokens, d.completion_tokens
FROM snapshot.app_daily AS d
WHERE d.requests < 0 OR d.prompt_tokens < 0 OR d.completion_tokens < 0
UNION ALL
SELECT 'model_daily', m.day, NULL, m.requests, m.prompt_tokens, m.completion_tokens
FROM snapshot.model_daily AS m
WHERE m.requests < 0 OR m.prompt_tokens < 0 OR m.completion_tokens < 0
UNION ALL
SELECT 'rankings', r.end_date, r.app_id, r.total_requests, r.total_tokens, NULL
FROM snapshot.rankings AS r
WHERE r.total_requests < 0 OR r.total_tokens < 0
ORDER BY ALL;
