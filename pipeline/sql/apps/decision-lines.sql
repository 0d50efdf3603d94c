-- The lines of a decision's file.
SELECT CAST(to_json({
  app_id: CAST(s.app_id AS BIGINT),
  app_name: s.app_name,
  visibility: s.visibility,
  subcategories: CAST(s.subcategories AS JSON),
  alias_of: CAST(s.alias_of AS BIGINT),
  updated_at: s.updated_at,
  action: s.action,
  reason: s.reason
}) AS VARCHAR) AS line
FROM staged AS s
WHERE s.file = $file
ORDER BY s.row;
