-- Apps that requests named (CONTRACT 6). identity is what tells one app from another: the normalised address, or
-- the title of an app without a public one. subcategories are separated by `|`. revision counts the changes since
-- the app was registered.

CREATE TABLE apps (
  app_id INTEGER PRIMARY KEY,
  identity TEXT NOT NULL UNIQUE,
  app_name TEXT NOT NULL,
  visibility TEXT NOT NULL CHECK (visibility IN ('public', 'hidden')),
  subcategories TEXT NOT NULL,
  revision INTEGER NOT NULL,
  registered_at TEXT NOT NULL
);

-- How many apps are new today.
CREATE INDEX apps_by_time ON apps (registered_at);
