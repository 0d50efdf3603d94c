-- Every app in the snapshot is public in the registry and no alias of another.
WITH named AS (
  SELECT a.app_id FROM snapshot.apps AS a
  UNION
  SELECT d.app_id FROM snapshot.app_daily AS d
  UNION
  SELECT r.app_id FROM snapshot.rankings AS r
)
SELECT n.app_id, g.visibility, g.alias_of
FROM named AS n
LEFT JOIN warehouse.registry AS g ON g.app_id = n.app_id
WHERE g.app_id IS NULL OR g.visibility <> 'public' OR g.alias_of IS NOT NULL
ORDER BY n.app_id;
