-- What the settled files are made from.
INSERT INTO warehouse.kept_days
SELECT d.day, d.content_hash
FROM warehouse.days AS d, warehouse.kept_files AS k
WHERE d.day <= k.database_through;

INSERT INTO warehouse.kept_apps
SELECT r.app_id, r.canonical_id
FROM warehouse.resolved AS r
WHERE r.published;
