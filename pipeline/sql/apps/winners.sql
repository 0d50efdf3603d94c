-- The winning registry rows of these apps, whatever may be wrong with them.
SELECT
  CAST(r.app_id AS VARCHAR) AS app_id,
  r.app_name,
  r.visibility,
  coalesce(r.subcategories, []) AS subcategories,
  CAST(r.alias_of AS VARCHAR) AS alias_of,
  CAST(epoch_ms(r.updated_at) AS VARCHAR) AS updated_ms
FROM registry_rows AS r
WHERE r.wins AND list_contains(CAST($ids AS VARCHAR[]), CAST(r.app_id AS VARCHAR))
ORDER BY r.app_id;
