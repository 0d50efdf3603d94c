-- Counts the view `incoming` by app where every row is known to be good: nothing but the figures is read, and where each
-- row is one request, none is added up.
CREATE OR REPLACE TEMP TABLE counted AS
SELECT
  i.app_id,
  count(*) AS rows,
  CAST(0 AS BIGINT) AS rows_without_tokens,
  CASE WHEN getvariable('aggregated') THEN CAST(sum(i.requests) AS BIGINT) ELSE count(*) END AS requests,
  CAST(sum(i.prompt_tokens) AS HUGEINT) AS prompt_tokens,
  CAST(sum(i.completion_tokens) AS HUGEINT) AS completion_tokens
FROM incoming AS i
GROUP BY i.app_id;
