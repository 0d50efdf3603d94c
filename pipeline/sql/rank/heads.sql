-- The apps of the list `whole` that may stand in a top 200 of it under some filter. A filter leaves apps out and
-- keeps the order, so whoever is among the first 200 of a filtered list is among the first 200 of all, or of those
-- that carry one of the same tags.
INSERT INTO head_apps
SELECT w.app_id
FROM whole AS w
WHERE w.rank <= 200
UNION
SELECT p.app_id
FROM (
  SELECT w.app_id, row_number() OVER (PARTITION BY t.tag ORDER BY w.rank) AS place
  FROM whole AS w
  JOIN (SELECT a.app_id, unnest(a.subcategories) AS tag FROM snapshot.apps AS a) AS t ON t.app_id = w.app_id
) AS p
WHERE p.place <= 200;
