-- The tags of the apps of a page.
SELECT app_id, to_json(subcategories) AS tags
FROM apps
WHERE list_contains(string_split($apps, ','), CAST(app_id AS VARCHAR));
