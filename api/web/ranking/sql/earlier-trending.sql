-- The ranks that the apps of a page had in another window.
SELECT app_id, rank
FROM trending($start, $end, category := $category, subcategory := $subcategory)
WHERE list_contains(string_split($apps, ','), CAST(app_id AS VARCHAR));
