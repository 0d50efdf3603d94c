-- The public tables and their columns, with the comments that explain them.
SELECT
  c.table_name,
  coalesce(t.comment, '') AS table_comment,
  c.column_name,
  c.data_type,
  c.is_nullable,
  coalesce(c.comment, '') AS comment
FROM duckdb_columns() AS c
JOIN duckdb_tables() AS t ON t.table_oid = c.table_oid AND t.database_oid = c.database_oid
WHERE c.database_name = 'snapshot' AND c.schema_name = 'main'
ORDER BY c.table_name, c.column_index;
