-- No public column is of a type that loses digits outside DuckDB (HUGEINT, DOUBLE, FLOAT).
SELECT c.table_name, c.column_name, c.data_type
FROM duckdb_columns() AS c
WHERE c.database_name = 'snapshot' AND c.data_type IN ('HUGEINT', 'UHUGEINT', 'DOUBLE', 'FLOAT')
ORDER BY ALL;
