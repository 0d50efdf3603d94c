-- Counts the view `incoming` by app and model, for one day with valid rows only. A text takes twice the space of its hash, and
-- most of the time is spent on memory access. `models` has the text of each hash.
CREATE OR REPLACE TEMP TABLE counted AS
WITH usage AS (
  SELECT
    i.app_id,
    hash(i.model) AS key,
    count(*) AS rows,
    CASE WHEN getvariable('aggregated') THEN CAST(sum_of(i.requests) AS BIGINT) ELSE count(*) END AS requests,
    sum_of(i.prompt_tokens) AS prompt_tokens,
    sum_of(i.completion_tokens) AS completion_tokens,
    CASE WHEN getvariable('tells_parts') THEN sum_of(coalesce(i.reasoning_tokens, 0)) ELSE 0 END AS reasoning_tokens,
    CASE WHEN getvariable('tells_parts') THEN sum_of(coalesce(i.cached_tokens, 0)) ELSE 0 END AS cached_tokens
  FROM incoming AS i
  GROUP BY i.app_id, hash(i.model)
)
SELECT
  list_min(getvariable('days')) AS day,
  u.app_id,
  m.model,
  u.rows,
  CAST(0 AS BIGINT) AS rows_without_tokens,
  u.requests,
  u.prompt_tokens,
  u.completion_tokens,
  u.reasoning_tokens,
  u.cached_tokens
FROM usage AS u
LEFT JOIN models AS m ON m.key = u.key;
