-- Whether the footers of these Parquet files, all of one day, prove every row valid. Each column chunk states its minimum,
-- maximum and nulls, and each rule is a range: if a row of all minima and a row of all maxima are valid, and nothing is null,
-- all rows are valid. Also counts the rows, and checks that no sum of them exceeds the integers that a DOUBLE holds
-- exactly.
WITH chunks AS (
  SELECT
    lower(trim(c.path_in_schema)) AS name,
    c.stats_min_value AS least,
    c.stats_max_value AS greatest,
    coalesce(c.stats_null_count, 1) = 0 AND c.stats_min_value IS NOT NULL AND c.stats_max_value IS NOT NULL AS known,
    c.num_values AS rows
  FROM parquet_metadata(CAST($paths AS VARCHAR[])) AS c
),
columns AS (
  SELECT
    c.name,
    bool_and(c.known) AS known,
    min(TRY_CAST(c.least AS TIMESTAMPTZ)) AT TIME ZONE 'UTC' AS first,
    max(TRY_CAST(c.greatest AS TIMESTAMPTZ)) AT TIME ZONE 'UTC' AS last,
    min(TRY_CAST(c.least AS BIGINT)) AS least,
    max(TRY_CAST(c.greatest AS BIGINT)) AS greatest,
    CAST(sum(c.rows) AS BIGINT) AS rows,
    sum(c.rows * TRY_CAST(c.greatest AS HUGEINT)) AS sum_at_most
  FROM chunks AS c
  WHERE c.name IN ('ts', 'app_id', 'prompt_tokens', 'completion_tokens', 'requests')
  GROUP BY c.name
),
extremes AS (
  SELECT
    bool_and(c.known) AS known,
    unnest([max(c.first), max(c.last)]) AS ts,
    unnest([
      MAP(list(c.name), list(c.least)),
      MAP(list(c.name), list(c.greatest))
    ]) AS value,
    max(c.rows) AS rows,
    bool_and(c.sum_at_most <= 9007199254740992) FILTER (c.name NOT IN ('ts', 'app_id')) AS small
  FROM columns AS c
)
SELECT
  coalesce(
    bool_and(
      e.known AND violation(
        list_min(getvariable('days')), NULL, e.ts, e.value['app_id'], e.value['prompt_tokens'],
        e.value['completion_tokens'], e.value['requests']
      ) IS NULL
    ),
    false
  ) AS proven,
  coalesce(max(e.rows), 0) AS rows,
  coalesce(bool_and(e.small), false) AS small
FROM extremes AS e;
