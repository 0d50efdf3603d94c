-- Counts the view `incoming` by app, for one day with valid rows only and without models or parts of tokens. It reads only
-- the figures, and adds no requests up if each row is one. `valid_rows` is the number of rows.

SET perfect_ht_threshold = array_bits(getvariable('valid_rows'));

CREATE OR REPLACE TEMP TABLE counted AS
SELECT
  list_min(getvariable('days')) AS day,
  i.app_id,
  CAST(NULL AS VARCHAR) AS model,
  count(*) AS rows,
  CAST(0 AS BIGINT) AS rows_without_tokens,
  CASE WHEN getvariable('aggregated') THEN CAST(sum_of(i.requests) AS BIGINT) ELSE count(*) END AS requests,
  sum_of(i.prompt_tokens) AS prompt_tokens,
  sum_of(i.completion_tokens) AS completion_tokens,
  CAST(0 AS BIGINT) AS reasoning_tokens,
  CAST(0 AS BIGINT) AS cached_tokens
FROM incoming AS i
GROUP BY i.app_id;

RESET perfect_ht_threshold;
