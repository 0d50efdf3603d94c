-- Directory sync: lists of members that a sync stages and then switches to, leases of jobs, their changes, and OAuth.

-- A list never changes. job_id is the job that staged it; lists that no group refers to are swept.
CREATE TABLE scim_member_lists (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  job_id TEXT NOT NULL
);
CREATE INDEX scim_member_lists_by_account ON scim_member_lists (account_id);

-- Null without members.
ALTER TABLE scim_groups ADD COLUMN member_list TEXT;
CREATE INDEX scim_groups_by_list ON scim_groups (member_list);
UPDATE scim_groups SET member_list = id WHERE deleted_at IS NULL AND member_count > 0;
INSERT INTO scim_member_lists (id, account_id, job_id)
  SELECT id, account_id, '' FROM scim_groups WHERE member_list IS NOT NULL;

-- member_id is the directory's id of a user or a group, type its type.
ALTER TABLE scim_members RENAME TO scim_members_by_group;
CREATE TABLE scim_members (
  list_id TEXT NOT NULL,
  member_id TEXT NOT NULL,
  type TEXT,
  display_name TEXT,
  PRIMARY KEY (list_id, member_id)
);
INSERT INTO scim_members (list_id, member_id, type, display_name)
  SELECT m.group_id, m.member_id, m.type, m.display_name
  FROM scim_members_by_group AS m JOIN scim_groups AS g ON g.member_list = m.group_id;
DROP TABLE scim_members_by_group;
-- Deleted groups keep their id, and lose their members.
UPDATE scim_groups SET member_digest = NULL, member_count = NULL WHERE deleted_at IS NOT NULL;

-- A running job with an expired lease was interrupted.
ALTER TABLE scim_sync_jobs ADD COLUMN lease_until TEXT;
UPDATE scim_sync_jobs SET lease_until = '' WHERE status = 'running';
ALTER TABLE scim_sync_jobs DROP COLUMN heartbeat;
-- JSON: what a successful job changed.
ALTER TABLE scim_sync_jobs ADD COLUMN report TEXT;

-- With token_url, the token's source holds the secret of the OAuth client client_id.
ALTER TABLE scim_connections ADD COLUMN token_url TEXT;
ALTER TABLE scim_connections ADD COLUMN client_id TEXT;

-- Limits of a key, each null for none. expires_at is ISO 8601 UTC.
ALTER TABLE api_keys ADD COLUMN requests_per_minute INTEGER;
ALTER TABLE api_keys ADD COLUMN tokens_per_day BIGINT;
ALTER TABLE api_keys ADD COLUMN expires_at TEXT;

-- One row per policy, subject and window, so that processes whose clocks differ count each window exactly. Rows of past
-- windows are deleted.
CREATE TABLE quotas_by_window (
  policy TEXT NOT NULL,
  subject TEXT NOT NULL,
  window_ends TEXT NOT NULL,
  used BIGINT NOT NULL,
  PRIMARY KEY (policy, subject, window_ends)
);
INSERT INTO quotas_by_window SELECT policy, subject, window_ends, used FROM quotas;
DROP TABLE quotas;
ALTER TABLE quotas_by_window RENAME TO quotas;

-- The nightly run registers apps.
DROP TABLE IF EXISTS apps;
