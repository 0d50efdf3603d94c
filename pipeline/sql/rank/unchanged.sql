-- Finds out whether there is anything new to publish.

-- name: fingerprint
-- Text of everything that decides the published data. It uses figures instead of files: neither a second delivery nor a day
-- whose files hold no rows makes a new snapshot.
WITH usage AS (
  SELECT
    string_agg(concat_ws(' ', d.day, d.content_hash, d.rows_rejected > 0), ',' ORDER BY d.day) AS content
  FROM days AS d
  WHERE d.day <= getvariable('last_day') AND d.rows_read > 0
),
apps AS (
  SELECT
    concat_ws(
      '-', count(*),
      sum(hash(r.app_id, r.app_name, r.visibility, r.subcategories, coalesce(r.alias_of, r.app_id)))
    ) AS content
  FROM registry AS r
)
SELECT sha256(concat_ws('|', $rules, usage.content, apps.content)) AS input_fingerprint
FROM usage, apps;

-- name: newest
-- The fingerprint of the newest snapshot, and the number of days that it restated. Through JSON, since older snapshots lack
-- the column cause.
SELECT
  m.input_fingerprint,
  (
    SELECT count(*)
    FROM newest.restatements AS r
    WHERE r.as_of = m.as_of AND coalesce(json_extract_string(to_json(r), '$.cause'), 'figures') = 'figures'
  ) AS days_restated
FROM newest.meta AS m;

-- name: retracted
-- The newest retracted snapshot with this input, if the warehouse recorded its run.
SELECT r.snapshot AS id
FROM warehouse.runs AS r
WHERE list_contains($retracted, r.snapshot)
  AND list_contains(json_extract_string(r.report, '$.stages[*].input_fingerprint'), $fingerprint)
ORDER BY r.snapshot DESC
LIMIT 1;
