-- Stores the apps that rows name. The first text that names an app stays its name.
INSERT INTO app_names
SELECT n.app_id, n.identity, n.app_name
FROM named_apps AS n
WHERE n.is_first AND n.app_id NOT IN (SELECT a.app_id FROM app_names AS a);
