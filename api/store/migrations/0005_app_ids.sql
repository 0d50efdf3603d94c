-- An app's id is derived from its identity and may exceed 2^31, so its column is wider.

CREATE TABLE apps_with_wide_ids (
  app_id BIGINT PRIMARY KEY,
  identity TEXT NOT NULL UNIQUE,
  app_name TEXT NOT NULL,
  visibility TEXT NOT NULL CHECK (visibility IN ('public', 'hidden')),
  subcategories TEXT NOT NULL,
  revision INTEGER NOT NULL,
  registered_at TEXT NOT NULL
);
INSERT INTO apps_with_wide_ids
SELECT app_id, identity, app_name, visibility, subcategories, revision, registered_at FROM apps;
DROP TABLE apps;
ALTER TABLE apps_with_wide_ids RENAME TO apps;

CREATE INDEX apps_by_time ON apps (registered_at);
