-- Apps of requests (CONTRACT 6). identity is the normalised address, or the title of an app without a public address.
-- subcategories are separated by `|`. revision counts the changes since registration.

CREATE TABLE apps (
  app_id INTEGER PRIMARY KEY,
  identity TEXT NOT NULL UNIQUE,
  app_name TEXT NOT NULL,
  visibility TEXT NOT NULL CHECK (visibility IN ('public', 'hidden')),
  subcategories TEXT NOT NULL,
  revision INTEGER NOT NULL,
  registered_at TEXT NOT NULL
);

-- To count today's new apps.
CREATE INDEX apps_by_time ON apps (registered_at);
