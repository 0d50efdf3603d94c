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
