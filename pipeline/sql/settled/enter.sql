-- The database is there; its Parquet twin, as far as there is one, is to be carried on.
INSERT INTO warehouse.kept_files (id, shape, database_through, parquet_through)
VALUES ($id, $shape, CAST($database_through AS DATE), CAST($parquet_through AS DATE));
