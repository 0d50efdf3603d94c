-- Accounts and their keys. Times are ISO 8601 UTC with milliseconds, as text, the same in every database.

CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at TEXT NOT NULL
);

-- key_hash is the SHA-256 of the key, which is not stored. key_end is its last four characters, for the owner to
-- recognise it.
CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  kind TEXT NOT NULL CHECK (kind IN ('inference', 'management')),
  key_hash TEXT NOT NULL UNIQUE,
  key_end TEXT NOT NULL,
  created_at TEXT NOT NULL,
  revoked_at TEXT
);
