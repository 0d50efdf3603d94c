-- Apps that usage names and the registry does not have.
SELECT CAST(a.app_id AS VARCHAR) AS app_id, a.identity, a.app_name
FROM app_names AS a
SEMI JOIN usage_daily AS u ON u.app_id = a.app_id
ANTI JOIN registry AS r ON r.app_id = a.app_id
ORDER BY a.app_id;
