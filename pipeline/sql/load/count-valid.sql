-- Counts the view `incoming` by app where it holds one day and every row is known to be valid: nothing but the figures is
-- read, and where each row is one request, none is added up. `valid_rows` is how many rows there are.

SET perfect_ht_threshold = array_bits(getvariable('valid_rows'));

-- The sum of a column. In a DOUBLE, which holds small sums exactly in whatever order they are added up, it takes half
-- the place of a HUGEINT, and most of the time goes into fetching places.
CREATE OR REPLACE TEMP MACRO sum_of(figure) AS CASE
  WHEN getvariable('small_sums') THEN CAST(sum(CAST(figure AS DOUBLE)) AS HUGEINT)
  ELSE CAST(sum(figure) AS HUGEINT)
END;

CREATE OR REPLACE TEMP TABLE counted AS
SELECT
  list_min(getvariable('days')) AS day,
  i.app_id,
  count(*) AS rows,
  CAST(0 AS BIGINT) AS rows_without_tokens,
  CASE WHEN getvariable('aggregated') THEN CAST(sum_of(i.requests) AS BIGINT) ELSE count(*) END AS requests,
  sum_of(i.prompt_tokens) AS prompt_tokens,
  sum_of(i.completion_tokens) AS completion_tokens
FROM incoming AS i
GROUP BY i.app_id;

RESET perfect_ht_threshold;
