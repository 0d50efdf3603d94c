-- Registry rows that break their type or range: winning rows, and rows that no newer row can replace. An old wrong row is
-- corrected by appending a better one. A violation fails the run, since an older row could publish an app that was just
-- hidden.
WITH validated AS (
  SELECT
    r.file,
    r.row,
    CASE
      WHEN r.fault IS NOT NULL THEN r.fault
      WHEN r.app_id IS NULL THEN 'app_id is not an integer'
      WHEN r.app_id = $unattributed
        THEN 'app_id ' || r.app_id || ' stands for requests that name no app: remove the row'
      WHEN r.updated_at IS NULL THEN 'updated_at is not a UTC timestamp such as 2026-01-05T10:00:00Z'
      WHEN NOT r.wins THEN NULL
      WHEN coalesce(r.visibility NOT IN ('public', 'hidden', 'private'), true)
        THEN 'visibility "' || coalesce(r.visibility, '') || '" is none of public, hidden, private'
      WHEN r.alias_text IS NOT NULL AND r.alias_of IS NULL
        THEN 'alias_of "' || r.alias_text || '" is neither an integer nor the name or address of an app'
      WHEN r.is_alias_named AND r.alias_of NOT IN (SELECT a.app_id FROM registry AS a)
        THEN 'alias_of "' || r.alias_text || '" names no app of the registry'
      WHEN r.app_name IS NULL AND r.alias_of IS NULL THEN 'app_name is empty, or holds nothing that can be seen'
      WHEN contains(r.app_name, $replacement) THEN 'app_name holds bytes that are no text in UTF-8'
      WHEN r.subcategories IS NULL THEN 'subcategories is not a list'
      WHEN NOT list_has_all(CAST($subcategories AS VARCHAR[]), r.subcategories)
        THEN 'unknown subcategories: ' || array_to_string(
          list_filter(r.subcategories, lambda t: NOT list_contains(CAST($subcategories AS VARCHAR[]), t)), ', '
        )
    END AS reason
  FROM registry_rows AS r
)
SELECT v.file, CAST(v.row AS INTEGER) AS row, v.reason
FROM validated AS v
WHERE v.reason IS NOT NULL
ORDER BY v.file, v.row;
