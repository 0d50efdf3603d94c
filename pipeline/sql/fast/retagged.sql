-- Apps with other tags than they had when the saved tops were found: the bounds of then say nothing of them. (An app that
-- was not there then has no usage on the settled days.)
INSERT INTO fast_retagged
SELECT a.app_id
FROM snapshot.apps AS a
JOIN warehouse.kept_tags AS k ON k.app_id = a.app_id
WHERE a.subcategories <> k.subcategories;
