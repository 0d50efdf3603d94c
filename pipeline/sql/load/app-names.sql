-- Stores the apps that the cluster's rows name. The first text that names an app stays its name.
INSERT INTO app_names (app_id, identity, app_name, named_at)
SELECT n.app_id, n.identity, n.app_name, list_min(getvariable('days'))
FROM named_apps AS n
WHERE n.is_first AND n.app_id NOT IN (SELECT a.app_id FROM app_names AS a);
