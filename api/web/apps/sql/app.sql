-- One app with its tags.
SELECT app_id, app_name, CAST(to_json(subcategories) AS VARCHAR) AS tags
FROM apps
WHERE app_id = TRY_CAST($app AS BIGINT);
