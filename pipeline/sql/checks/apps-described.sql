-- Every app with usage or a rank is described in the table apps, under the same name.
SELECT DISTINCT r.app_id, r.app_name
FROM snapshot.rankings AS r
LEFT JOIN snapshot.apps AS a ON a.app_id = r.app_id
WHERE a.app_id IS NULL OR a.app_name <> r.app_name
UNION
SELECT DISTINCT d.app_id, NULL
FROM snapshot.app_daily AS d
ANTI JOIN snapshot.apps AS a ON a.app_id = d.app_id
ORDER BY ALL;
