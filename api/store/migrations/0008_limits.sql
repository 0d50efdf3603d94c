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
DROP TABLE apps;
