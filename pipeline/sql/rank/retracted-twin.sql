-- The newest of the retracted snapshots that was made from this input, as far as the warehouse remembers its run.
SELECT r.snapshot AS id
FROM warehouse.runs AS r
WHERE list_contains($retracted, r.snapshot)
  AND list_contains(json_extract_string(r.report, '$.stages[*].input_fingerprint'), $fingerprint)
ORDER BY r.snapshot DESC
LIMIT 1;
