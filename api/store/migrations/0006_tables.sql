-- The tables of version 1.0.0. Times are ISO 8601 UTC with milliseconds, as text; flags are 0 or 1.

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

CREATE TABLE quotas (
  policy TEXT NOT NULL,
  subject TEXT NOT NULL,
  window_ends TEXT NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY (policy, subject)
);

-- The directory of an account. token_source is the name of an environment variable or the path of a file; the token is
-- not stored. schedule is a cron expression in UTC, next_sync_at its next time. This many groups and members may be
-- removed, and beyond them this percentage; null is the default.
CREATE TABLE scim_connections (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  url TEXT NOT NULL,
  token_kind TEXT NOT NULL CHECK (token_kind IN ('env', 'file')),
  token_source TEXT NOT NULL,
  members TEXT NOT NULL CHECK (members IN ('inline', 'per_group', 'off')),
  allow_loopback INTEGER NOT NULL,
  allow_private INTEGER NOT NULL,
  schedule TEXT,
  next_sync_at TEXT,
  updated_at TEXT NOT NULL,
  gate_groups INTEGER,
  gate_members INTEGER,
  gate_percent INTEGER
);

-- runner is the process of the job. failure is the cause, by its name in api/scim/failures.ts. scheduled is 1 for a job
-- that the connection's schedule started.
CREATE TABLE scim_sync_jobs (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed')),
  synced_groups INTEGER,
  deleted_groups INTEGER,
  failure TEXT,
  created_at TEXT NOT NULL,
  started_at TEXT,
  finished_at TEXT,
  runner TEXT,
  heartbeat INTEGER NOT NULL,
  scheduled INTEGER NOT NULL DEFAULT 0
);

-- One job per account at a time.
CREATE UNIQUE INDEX scim_open_jobs ON scim_sync_jobs (account_id) WHERE status IN ('queued', 'running');
CREATE INDEX scim_jobs_by_account ON scim_sync_jobs (account_id, created_at);
-- Every process polls these every other second.
CREATE INDEX scim_jobs_by_status ON scim_sync_jobs (status, created_at);

-- id is local and permanent; scim_id and external_id are the directory's `id` and `externalId`. A group that the
-- directory deleted keeps its row, with deleted_at. So does a group with staged members until the sync ends.
-- member_digest identifies the last supplied members; it and member_count are null until the directory supplies some.
CREATE TABLE scim_groups (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scim_id TEXT NOT NULL,
  external_id TEXT,
  display_name TEXT NOT NULL,
  member_digest TEXT,
  member_count INTEGER,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  deleted_at TEXT,
  UNIQUE (account_id, scim_id)
);
CREATE INDEX scim_present_groups ON scim_groups (account_id, created_at, id) WHERE deleted_at IS NULL;

CREATE TABLE scim_members (
  group_id TEXT NOT NULL REFERENCES scim_groups (id),
  member_id TEXT NOT NULL,
  type TEXT,
  display_name TEXT,
  PRIMARY KEY (group_id, member_id)
);
