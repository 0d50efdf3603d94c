-- The description of a snapshot for the files beside the DuckDB file.

-- name: meta
-- The row of meta, with the time as text, and facts about the tables.
SELECT
  m.* REPLACE (m.as_of_text AS as_of),
  (SELECT count(*) FROM snapshot.restatements AS r WHERE r.as_of = m.as_of AND r.cause = 'figures') AS days_restated,
  (SELECT CAST(coalesce(sum(c.total_requests), 0) AS VARCHAR) FROM snapshot.coverage AS c) AS total_requests,
  (SELECT CAST(coalesce(sum(c.total_tokens), 0) AS VARCHAR) FROM snapshot.coverage AS c) AS total_tokens,
  {
    rankings: (SELECT count(*) FROM snapshot.rankings),
    app_daily: (SELECT count(*) FROM snapshot.app_daily),
    model_daily: (SELECT count(*) FROM snapshot.model_daily),
    apps: (SELECT count(*) FROM snapshot.apps),
    categories: (SELECT count(*) FROM snapshot.categories),
    coverage: (SELECT count(*) FROM snapshot.coverage),
    restatements: (SELECT count(*) FROM snapshot.restatements),
    meta: (SELECT count(*) FROM snapshot.meta)
  } AS rows
FROM snapshot.meta AS m;

-- name: columns
-- The public tables and their columns, with their comments.
SELECT
  c.table_name,
  coalesce(t.comment, '') AS table_comment,
  c.column_name AS name,
  c.data_type AS type,
  coalesce(c.comment, '') AS description
FROM duckdb_columns() AS c
JOIN duckdb_tables() AS t ON t.table_oid = c.table_oid AND t.database_oid = c.database_oid
WHERE c.database_name = 'snapshot' AND c.schema_name = 'main'
ORDER BY c.table_name, c.column_index;

-- name: months
-- The months of a table by day, from the first day of the data to the last: their days, and a fingerprint of their rows.
WITH months AS (
  SELECT
    strftime(t.first_day, '%Y-%m') AS month,
    CAST(t.first_day AS DATE) AS first_day,
    last_day(t.first_day) AS last_day
  FROM snapshot.meta AS m, generate_series(date_trunc('month', m.first_day), m.data_through, INTERVAL 1 MONTH) AS t (first_day)
),
contents AS (
  SELECT date_trunc('month', t.day) AS first_day, sum(t.rows) AS rows, bit_xor(t.content) AS parity
  FROM day_totals AS t
  WHERE $table = 'app_daily'
  GROUP BY ALL
  UNION ALL
  SELECT date_trunc('month', m.day) AS first_day, count(*), bit_xor(hash(*COLUMNS(m.*)))
  FROM snapshot.model_daily AS m
  WHERE $table = 'model_daily'
  GROUP BY ALL
)
SELECT
  m.month,
  CAST(m.first_day AS VARCHAR) AS first_day,
  CAST(m.last_day AS VARCHAR) AS last_day,
  concat_ws('-', coalesce(c.rows, 0), c.parity) AS content
FROM months AS m
LEFT JOIN contents AS c ON c.first_day = m.first_day
ORDER BY m.month;
