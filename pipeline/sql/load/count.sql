-- Counts the view `validated` by day, app and model in one pass; app_id NULL holds a day's rejected rows.
CREATE OR REPLACE TEMP TABLE counted AS
WITH rows AS (
  SELECT v.*, v.violation IS NULL AS valid
  FROM validated AS v
)
SELECT
  r.day,
  CASE WHEN r.valid THEN r.app_id END AS app_id,
  CASE WHEN r.valid THEN r.model END AS model,
  CAST(sum(r.lines) AS BIGINT) AS rows,
  CAST(count(*) FILTER (r.valid AND r.prompt_tokens IS NULL) AS BIGINT) AS rows_without_tokens,
  CAST(coalesce(sum(r.requests) FILTER (r.valid), 0) AS BIGINT) AS requests,
  CAST(sum(greatest(r.prompt_tokens, 0)) AS HUGEINT) AS prompt_tokens,
  CAST(sum(greatest(r.completion_tokens, 0)) AS HUGEINT) AS completion_tokens,
  CAST(coalesce(sum(r.reasoning_tokens) FILTER (r.valid), 0) AS HUGEINT) AS reasoning_tokens,
  CAST(coalesce(sum(r.cached_tokens) FILTER (r.valid), 0) AS HUGEINT) AS cached_tokens
FROM rows AS r
GROUP BY 1, 2, 3;
