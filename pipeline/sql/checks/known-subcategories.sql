-- Every tag of an app and every filter of a list is in the taxonomy.
SELECT a.app_id, NULL AS category, a.tag AS subcategory
FROM (SELECT p.app_id, unnest(p.subcategories) AS tag FROM snapshot.apps AS p) AS a
ANTI JOIN snapshot.categories AS c ON c.subcategory = a.tag
UNION ALL
SELECT DISTINCT NULL, r.category, r.subcategory
FROM snapshot.rankings AS r
WHERE r.category NOT IN (SELECT c.category FROM snapshot.categories AS c)
  OR (
    r.subcategory IS NOT NULL
    AND NOT EXISTS (
      SELECT 1 FROM snapshot.categories AS c WHERE c.subcategory = r.subcategory AND c.category = r.category
    )
  )
ORDER BY ALL;
