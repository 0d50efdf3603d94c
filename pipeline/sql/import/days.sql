-- What the staged rows hold, by day. A broken count is nothing here: the next run judges it.
SELECT
  CAST(CAST(utc_from_text(s.ts) AS DATE) AS VARCHAR) AS day,
  count(*) AS rows,
  CAST(coalesce(sum(greatest(coalesce(count_from_text(s.requests), 1), 0)), 0) AS VARCHAR) AS requests,
  CAST(coalesce(sum(greatest(count_from_text(s.prompt_tokens), 0)), 0) AS VARCHAR) AS prompt_tokens,
  CAST(coalesce(sum(greatest(count_from_text(s.completion_tokens), 0)), 0) AS VARCHAR) AS completion_tokens,
  CAST(coalesce(
    sum(greatest(count_from_text(s.prompt_tokens), 0) + greatest(count_from_text(s.completion_tokens), 0))
      FILTER (s.app_id IS NULL AND nullif(trim(s.app), '') IS NULL),
    0
  ) AS VARCHAR) AS tokens_without_app,
  count(*) FILTER (nullif(s.request_id, '') IS NULL) AS rows_without_id
FROM staged AS s
GROUP BY 1
ORDER BY 1;
