-- Every app in the snapshot is public in the registry and no alias of another.
WITH open AS (
  SELECT g.app_id FROM warehouse.registry AS g WHERE g.visibility = 'public' AND g.alias_of IS NULL
),
named AS (
  SELECT a.app_id FROM snapshot.apps AS a ANTI JOIN open AS o ON o.app_id = a.app_id
  UNION
  SELECT d.app_id FROM snapshot.app_daily AS d ANTI JOIN open AS o ON o.app_id = d.app_id
  UNION
  SELECT r.app_id FROM snapshot.rankings AS r ANTI JOIN open AS o ON o.app_id = r.app_id
)
SELECT n.app_id, g.visibility, g.alias_of
FROM named AS n
LEFT JOIN warehouse.registry AS g ON g.app_id = n.app_id
ORDER BY n.app_id;
