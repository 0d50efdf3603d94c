-- Which of the apps in `named_apps` the registry does not have, under whatever id.
SELECT n.text
FROM named_apps AS n
WHERE n.is_first
  AND NOT EXISTS (FROM registry_rows AS r WHERE r.app_id = n.app_id OR r.identity = n.identity)
  AND NOT EXISTS (FROM registry AS r WHERE n.identity = 'local:' || lower(r.app_name))
ORDER BY n.text;
