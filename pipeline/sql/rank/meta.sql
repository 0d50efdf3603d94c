-- The one row that describes the snapshot.
INSERT INTO snapshot.meta BY NAME
SELECT
  getvariable('as_of') AS as_of,
  CAST($data_through AS DATE) AS data_through,
  CAST($first_day AS DATE) AS first_day,
  $version AS version,
  $licence AS licence,
  $licence_url AS licence_url,
  $publisher AS publisher,
  $attribution AS attribution,
  $sources AS sources,
  $comparability AS comparability,
  $input_fingerprint AS input_fingerprint;
