-- Every app with usage or a rank is described in the table apps, under the same name.
SELECT DISTINCT u.app_id, u.app_name
FROM (
  SELECT r.app_id, r.app_name FROM snapshot.rankings AS r
  UNION
  SELECT d.app_id, NULL FROM snapshot.app_daily AS d
) AS u
LEFT JOIN snapshot.apps AS a ON a.app_id = u.app_id
WHERE a.app_id IS NULL OR a.app_name <> u.app_name
ORDER BY u.app_id;
