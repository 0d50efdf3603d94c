-- Both files reach as far.
UPDATE warehouse.kept_files SET parquet_through = database_through, checksums = $checksums;
