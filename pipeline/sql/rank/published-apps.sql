-- Where usage counts in the snapshot that is about to be published.
INSERT INTO warehouse.published_apps
SELECT $snapshot, r.app_id, r.canonical_id, r.published
FROM warehouse.resolved AS r;
