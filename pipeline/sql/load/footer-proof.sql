-- Do the footers of these Parquet files prove every row good? Each column chunk states its least and greatest
-- value and its nulls; where they lie inside the rules of judgement.sql, no row needs to be looked at. Beside that: how
-- many rows there are, and whether no sum of them can be beyond the integers that a DOUBLE holds exactly.
WITH chunks AS (
  SELECT
    lower(c.path_in_schema) AS name,
    c.stats_min_value AS least,
    c.stats_max_value AS greatest,
    c.stats_null_count AS nulls,
    c.num_values AS rows
  FROM parquet_metadata(CAST($paths AS VARCHAR[])) AS c
),
columns AS (
  SELECT
    c.name,
    bool_and(coalesce(
      CASE c.name
        WHEN 'ts' THEN c.nulls = 0
          AND utc_from_text(c.least) >= getvariable('day') AND utc_from_text(c.greatest) < getvariable('day') + 1
        WHEN 'app_id' THEN c.nulls = 0
        WHEN 'requests' THEN c.nulls = 0 AND TRY_CAST(c.least AS BIGINT) >= 0
          AND TRY_CAST(c.greatest AS BIGINT) <= 1000000000000
        ELSE c.nulls = 0 AND TRY_CAST(c.least AS BIGINT) >= 0
      END,
      false
    )) AS good,
    sum(c.rows) AS rows,
    sum(c.rows * TRY_CAST(c.greatest AS HUGEINT)) AS sum_at_most
  FROM chunks AS c
  WHERE c.name IN ('ts', 'app_id', 'prompt_tokens', 'completion_tokens', 'requests')
  GROUP BY c.name
)
SELECT
  coalesce(bool_and(c.good), false) AS proven,
  CAST(coalesce(max(c.rows), 0) AS BIGINT) AS rows,
  coalesce(
    bool_and(c.sum_at_most <= 9007199254740992) FILTER (c.name NOT IN ('ts', 'app_id')), false
  ) AS small
FROM columns AS c;
