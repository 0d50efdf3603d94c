-- What tells whether there is something new to publish.

-- name: fingerprint
-- One text for all that decides what is published. It is computed from the figures, not from the files, so a
-- file delivered a second time does not make a new snapshot, nor does a day whose files hold no row: it is published as
-- one that has no files.
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
-- What the newest snapshot was made from, and how many days that were published before it gave new figures.
-- Through JSON, since older snapshots have no column cause: theirs are figures.
SELECT
  m.input_fingerprint,
  (
    SELECT count(*)
    FROM newest.restatements AS r
    WHERE r.as_of = m.as_of AND coalesce(json_extract_string(to_json(r), '$.cause'), 'figures') = 'figures'
  ) AS days_restated
FROM newest.meta AS m;

-- name: retracted
-- The newest of the retracted snapshots that was made from this input, as far as the warehouse remembers its run.
SELECT r.snapshot AS id
FROM warehouse.runs AS r
WHERE list_contains($retracted, r.snapshot)
  AND list_contains(json_extract_string(r.report, '$.stages[*].input_fingerprint'), $fingerprint)
ORDER BY r.snapshot DESC
LIMIT 1;
