-- Every app in the snapshot is public in the registry and no alias of another.
-- (No other app has usage or a rank: see apps-described.)
SELECT a.app_id, g.visibility, g.alias_of
FROM snapshot.apps AS a
LEFT JOIN warehouse.registry AS g ON g.app_id = a.app_id
WHERE g.visibility IS DISTINCT FROM 'public' OR g.alias_of IS NOT NULL
ORDER BY a.app_id;
