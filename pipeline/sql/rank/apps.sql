-- The public apps. Aliases, hidden and private apps do not enter the snapshot.
INSERT INTO snapshot.apps
SELECT r.app_id, r.app_name, r.subcategories
FROM warehouse.registry AS r
JOIN warehouse.resolved AS c ON c.app_id = r.app_id
WHERE c.published AND c.canonical_id = c.app_id
ORDER BY r.app_id;
