-- The usage of one app per day; days without usage have no row.
SELECT
  CAST(d.day AS VARCHAR) AS day,
  CAST(d.requests AS BIGINT) AS requests,
  CAST(d.prompt_tokens AS VARCHAR) AS prompt_tokens,
  CAST(d.completion_tokens AS VARCHAR) AS completion_tokens,
  CAST(CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT) AS VARCHAR) AS total_tokens
FROM app_daily AS d
WHERE d.app_id = TRY_CAST($app AS BIGINT)
ORDER BY d.day;
