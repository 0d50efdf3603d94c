-- Counts the view `incoming` by app in one pass; app_id NULL gathers the rejected rows.
CREATE OR REPLACE TEMP TABLE counted AS
WITH judged AS (
  SELECT
    i.*,
    rejection(i.fault, i.ts, i.app_id, i.prompt_tokens, i.completion_tokens, i.requests) IS NULL AS good
  FROM incoming AS i
)
SELECT
  CASE WHEN j.good THEN j.app_id END AS app_id,
  CAST(sum(j.lines) AS BIGINT) AS rows,
  CAST(count(*) FILTER (j.good AND j.prompt_tokens IS NULL) AS BIGINT) AS rows_without_tokens,
  CAST(coalesce(sum(j.requests) FILTER (j.good), 0) AS BIGINT) AS requests,
  CAST(sum(greatest(j.prompt_tokens, 0)) AS HUGEINT) AS prompt_tokens,
  CAST(sum(greatest(j.completion_tokens, 0)) AS HUGEINT) AS completion_tokens
FROM judged AS j
GROUP BY 1;
