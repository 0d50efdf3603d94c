-- Every row about an app, oldest first: decisions have an action and a reason, delivered rows have neither.
SELECT
  strftime(r.updated_at, '%Y-%m-%dT%H:%M:%S.%gZ') AS updated_at,
  s.action,
  s.reason,
  r.app_name,
  r.visibility,
  r.subcategories,
  CAST(r.alias_of AS VARCHAR) AS alias_of,
  r.file
FROM registry_rows AS r
JOIN staged AS s ON s.file = r.file AND s.row = r.row
WHERE CAST(r.app_id AS VARCHAR) = $id
ORDER BY r.updated_at, r.file, r.row;
