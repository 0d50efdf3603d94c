-- The ranking rule. It stands here and nowhere else: the API, the table rankings and analysts all ask these macros. The
-- schema fast gets it from this text as well, with its own name for main.

-- A misspelt filter is an error, never an empty list.
CREATE MACRO main.filtered_apps(wanted_category, wanted_subcategory) AS TABLE
WITH tags AS (
  SELECT c.subcategory
  FROM categories AS c
  WHERE (wanted_category IS NULL OR c.category = wanted_category)
    AND (wanted_subcategory IS NULL OR c.subcategory = wanted_subcategory)
)
SELECT a.app_id, a.app_name
FROM main.apps AS a
WHERE CASE
  WHEN wanted_category IS NULL AND wanted_subcategory IS NULL THEN true
  WHEN (SELECT count(*) FROM tags) = 0 THEN error(
    'No such filter: category ' || coalesce(wanted_category, 'NULL')
    || ' with subcategory ' || coalesce(wanted_subcategory, 'NULL') || '; the table categories lists them all'
  )
  ELSE list_has_any(a.subcategories, (SELECT list(t.subcategory) FROM tags AS t))
END;
COMMENT ON MACRO TABLE main.filtered_apps IS 'The apps a filter lets through: all of them, a category group, or a subcategory (which must belong to the category when both are given).';

CREATE MACRO main.popular(start_date, end_date, category := NULL, subcategory := NULL) AS TABLE
WITH volumes AS (
  SELECT
    d.app_id,
    CAST(sum(d.requests) AS BIGINT) AS total_requests,
    CAST(sum(d.prompt_tokens) + sum(d.completion_tokens) AS DECIMAL(38, 0)) AS total_tokens
  FROM main.usage_between(start_date, end_date) AS d
  GROUP BY d.app_id
)
SELECT
  row_number() OVER (ORDER BY v.total_tokens DESC, v.app_id) AS rank,
  v.app_id,
  f.app_name,
  v.total_requests,
  v.total_tokens
FROM volumes AS v
JOIN main.filtered_apps(category, subcategory) AS f ON f.app_id = v.app_id
WHERE v.total_requests > 0
ORDER BY rank;
COMMENT ON MACRO TABLE main.popular IS 'Apps by tokens inside the window, both days inclusive: popular(DATE ''2026-08-25'', DATE ''2026-08-31'', category := ''coding''). Ties: lower app_id first.';

-- Excess is compared as three times the window against the sum of the three periods before it, in integers.
CREATE MACRO main.trending(start_date, end_date, category := NULL, subcategory := NULL) AS TABLE
WITH inside AS (
  SELECT
    d.app_id,
    CAST(sum(d.requests) AS BIGINT) AS total_requests,
    CAST(sum(d.prompt_tokens) + sum(d.completion_tokens) AS HUGEINT) AS total_tokens
  FROM main.usage_between(start_date, end_date) AS d
  GROUP BY d.app_id
),
before AS (
  SELECT d.app_id, CAST(sum(d.prompt_tokens) + sum(d.completion_tokens) AS HUGEINT) AS total_tokens
  FROM main.usage_between(
    CAST(start_date AS DATE) - CAST(3 * (CAST(end_date AS DATE) - CAST(start_date AS DATE) + 1) AS INTEGER),
    CAST(start_date AS DATE) - 1
  ) AS d
  GROUP BY d.app_id
),
growth AS (
  SELECT i.app_id, i.total_requests, i.total_tokens, 3 * i.total_tokens - coalesce(b.total_tokens, 0) AS triple_excess
  FROM inside AS i
  LEFT JOIN before AS b ON b.app_id = i.app_id
  WHERE i.total_requests > 0 AND 3 * i.total_tokens > coalesce(b.total_tokens, 0)
)
SELECT
  row_number() OVER (ORDER BY g.triple_excess DESC, g.total_tokens DESC, g.app_id) AS rank,
  g.app_id,
  f.app_name,
  g.total_requests,
  CAST(g.total_tokens AS DECIMAL(38, 0)) AS total_tokens,
  CAST(g.triple_excess // 3 AS DECIMAL(38, 0)) AS excess_tokens
FROM growth AS g
JOIN main.filtered_apps(category, subcategory) AS f ON f.app_id = g.app_id
ORDER BY rank;
COMMENT ON MACRO TABLE main.trending IS 'Apps by growth: tokens inside the window minus the average of the three equal periods just before it; only growing apps. Days before 2025-01-01 and missing days (see coverage) count as zero. excess_tokens is rounded down, the order is exact. Ties: higher total_tokens, then lower app_id.';
