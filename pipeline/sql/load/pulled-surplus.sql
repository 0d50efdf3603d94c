-- Of the rows that repeat a request_id, all but the one that counts are surplus.
CREATE OR REPLACE TEMP TABLE surplus AS
SELECT
  r.app_id,
  r.rows - coalesce(w.rows, 0) AS rows,
  r.rows_without_tokens - coalesce(w.rows_without_tokens, 0) AS rows_without_tokens,
  r.requests - coalesce(w.requests, 0) AS requests,
  r.prompt_tokens - coalesce(w.prompt_tokens, 0) AS prompt_tokens,
  r.completion_tokens - coalesce(w.completion_tokens, 0) AS completion_tokens
FROM repeated AS r
LEFT JOIN winners AS w ON w.app_id = r.app_id;
