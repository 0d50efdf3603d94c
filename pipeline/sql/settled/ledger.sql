-- What the ledger says of the settled files.
SELECT
  k.id,
  k.shape,
  CAST(k.database_through AS VARCHAR) AS database_through,
  CAST(k.parquet_through AS VARCHAR) AS parquet_through,
  k.checksums
FROM warehouse.kept_files AS k;
