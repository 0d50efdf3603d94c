-- Apps of the snapshot before that have no row left in the registry. To hide an app, or to make it an alias, is a
-- row of its own; an app without any row was lost.
SELECT CAST(p.app_id AS VARCHAR) AS app_id, p.app_name
FROM previous.apps AS p
ANTI JOIN warehouse.registry AS r ON r.app_id = p.app_id
ORDER BY p.app_id;
