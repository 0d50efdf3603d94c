-- The first rows as they were understood.
SELECT
  s.ts, s.app_id, s.app, s.prompt_tokens, s.completion_tokens, s.requests, s.request_id, s.model, s.provider,
  s.account_id, s.reasoning_tokens, s.cached_tokens
FROM staged AS s
ORDER BY s.file, s.row
LIMIT 10;
