-- Does the warehouse have its tables? They are made all at once; a first run that was stopped before left the file alone.
SELECT count(*) > 0 AS made
FROM duckdb_tables() AS t
WHERE t.table_name = 'days';
