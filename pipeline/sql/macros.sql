-- The table macros of a snapshot: the only text of the ranking rule.

-- name: window
COMMENT ON MACRO data_through IS 'Last day of the data, as in meta.';

-- The window between two dates, DATE or YYYY-MM-DD (CONTRACT 4.1).

CREATE MACRO window_end(start_date, end_date) AS CASE
  WHEN start_date IS NULL OR end_date IS NULL THEN error('start_date and end_date are both needed, as DATE or YYYY-MM-DD')
  WHEN CAST(end_date AS DATE) < DATE '2025-01-01' THEN error(
    'end_date ' || CAST(end_date AS VARCHAR) || ' is before 2025-01-01, the first day of the dataset; give a later one'
  )
  WHEN CAST(start_date AS DATE) > CAST(end_date AS DATE) THEN error(
    'start_date ' || CAST(start_date AS VARCHAR) || ' is after end_date ' || CAST(end_date AS VARCHAR)
    || '; give the earlier day first'
  )
  WHEN CAST(start_date AS DATE) > data_through() THEN error(
    'start_date ' || CAST(start_date AS VARCHAR) || ' is after ' || CAST(data_through() AS VARCHAR)
    || ', the last day of the data; give an earlier one'
  )
  ELSE least(CAST(end_date AS DATE), data_through())
END;
COMMENT ON MACRO window_end IS 'Last day of the window that popular and trending rank: end_date, clamped back to data_through. Dates that leave no day of the dataset are an error.';

CREATE MACRO window_start(start_date, end_date) AS CASE
  WHEN window_end(start_date, end_date) IS NOT NULL THEN greatest(CAST(start_date AS DATE), DATE '2025-01-01')
END;
COMMENT ON MACRO window_start IS 'First day of that window: start_date, clamped forward to 2025-01-01.';

CREATE MACRO usage_between(first_day, last_day) AS TABLE
SELECT d.app_id, d.requests, d.prompt_tokens, d.completion_tokens
FROM app_daily AS d
WHERE d.day BETWEEN CAST(first_day AS DATE) AND CAST(last_day AS DATE);
COMMENT ON MACRO TABLE usage_between IS 'Usage of the apps from first_day to last_day, both inclusive, in rows that add up to it.';

-- name: ranking
-- The API, the table rankings and analysts use these macros. The schema fast gets a second copy of this text, with its own
-- name instead of main.

-- A misspelt filter is an error, not an empty list.
CREATE MACRO main.filtered_apps(wanted_category, wanted_subcategory) AS TABLE
SELECT a.app_id, a.app_name
FROM main.apps AS a
WHERE (wanted_category IS NULL AND wanted_subcategory IS NULL) OR list_has_any(a.subcategories, (
  SELECT
    CASE WHEN count(*) = 0 THEN error(
      'No such filter: category ' || coalesce(wanted_category, 'NULL')
      || ' with subcategory ' || coalesce(wanted_subcategory, 'NULL') || '; the table categories lists them all'
    ) ELSE list(c.subcategory) END
  FROM categories AS c
  WHERE (wanted_category IS NULL OR c.category = wanted_category)
    AND (wanted_subcategory IS NULL OR c.subcategory = wanted_subcategory)
));
COMMENT ON MACRO TABLE main.filtered_apps IS 'The apps a filter lets through: all of them, a category group, or a subcategory (which must belong to the category when both are given).';

-- DuckDB looks up the names inside a macro in the current database, so the macros of an attached database fail at the first
-- name. That is this one: it states the remedy.
CREATE MACRO main."volumes: USE the attached database first"(first_day, last_day) AS TABLE
SELECT
  d.app_id,
  CAST(sum(d.requests) AS BIGINT) AS total_requests,
  CAST(sum(d.prompt_tokens) + sum(d.completion_tokens) AS HUGEINT) AS total_tokens
FROM main.usage_between(first_day, last_day) AS d
GROUP BY d.app_id;
COMMENT ON MACRO TABLE main."volumes: USE the attached database first" IS 'Requests and tokens of each app from first_day to last_day, both inclusive.';

CREATE MACRO main.popular(start_date, end_date, category := NULL, subcategory := NULL) AS TABLE
SELECT
  row_number() OVER (ORDER BY v.total_tokens DESC, v.app_id) AS rank,
  v.app_id,
  f.app_name,
  v.total_requests,
  CAST(v.total_tokens AS TOKEN_TOTAL) AS total_tokens
FROM main."volumes: USE the attached database first"(
  main.window_start(start_date, end_date), main.window_end(start_date, end_date)
) AS v
JOIN main.filtered_apps(category, subcategory) AS f ON f.app_id = v.app_id
WHERE v.total_requests > 0
ORDER BY rank;
COMMENT ON MACRO TABLE main.popular IS 'Apps by tokens inside the window, both days inclusive: popular(''2026-08-25'', ''2026-08-31'', category := ''coding''). Ties: lower app_id first. A start before 2025-01-01 and an end after data_through are clamped; a window without a day of the dataset is an error.';

CREATE MACRO main.popular_by_requests(start_date, end_date, category := NULL, subcategory := NULL) AS TABLE
SELECT
  row_number() OVER (ORDER BY v.total_requests DESC, v.app_id) AS rank,
  v.app_id,
  f.app_name,
  v.total_requests,
  CAST(v.total_tokens AS TOKEN_TOTAL) AS total_tokens
FROM main."volumes: USE the attached database first"(
  main.window_start(start_date, end_date), main.window_end(start_date, end_date)
) AS v
JOIN main.filtered_apps(category, subcategory) AS f ON f.app_id = v.app_id
WHERE v.total_requests > 0
ORDER BY rank;
COMMENT ON MACRO TABLE main.popular_by_requests IS 'As popular, by requests instead of tokens. Ties: lower app_id first.';

-- Compares in integers: three times the window with the sum of the three periods before it.
CREATE MACRO main.trending(start_date, end_date, category := NULL, subcategory := NULL) AS TABLE
WITH growth AS (
  SELECT
    i.app_id,
    i.total_requests,
    i.total_tokens,
    3 * i.total_tokens - coalesce(b.total_tokens, 0) AS triple_excess
  FROM main."volumes: USE the attached database first"(
    main.window_start(start_date, end_date), main.window_end(start_date, end_date)
  ) AS i
  LEFT JOIN main."volumes: USE the attached database first"(
    main.window_start(start_date, end_date)
      - CAST(3 * (main.window_end(start_date, end_date) - main.window_start(start_date, end_date) + 1) AS INTEGER),
    main.window_start(start_date, end_date) - 1
  ) AS b ON b.app_id = i.app_id
  WHERE i.total_requests > 0
)
SELECT
  row_number() OVER (ORDER BY g.triple_excess DESC, g.total_tokens DESC, g.app_id) AS rank,
  g.app_id,
  f.app_name,
  g.total_requests,
  CAST(g.total_tokens AS TOKEN_TOTAL) AS total_tokens,
  CAST(g.triple_excess // 3 AS TOKEN_TOTAL) AS excess_tokens
FROM growth AS g
JOIN main.filtered_apps(category, subcategory) AS f ON f.app_id = g.app_id
WHERE g.triple_excess > 0
ORDER BY rank;
COMMENT ON MACRO TABLE main.trending IS 'Apps by growth: tokens inside the window minus the average of the three equal periods just before it; only growing apps. Days before 2025-01-01 and missing days (see coverage) count as zero. excess_tokens is rounded down, the order is exact. Ties: higher total_tokens, then lower app_id. Dates as in popular.';
