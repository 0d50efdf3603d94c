-- The private warehouse: every app, per day, with the ledger of what was read and what was rejected.
-- It can be rebuilt from raw/ at any time; nothing of it is public.

-- One row per day that was counted. The same fingerprint means the same files, so the day is not read again.
CREATE TABLE IF NOT EXISTS days (
  day DATE NOT NULL,
  fingerprint VARCHAR NOT NULL,
  content_hash VARCHAR NOT NULL,
  counted_at TIMESTAMPTZ NOT NULL,
  rows_read BIGINT NOT NULL,
  rows_rejected BIGINT NOT NULL,
  rows_duplicate BIGINT NOT NULL,
  rows_without_tokens BIGINT NOT NULL,
  tokens_read HUGEINT NOT NULL,
  tokens_rejected HUGEINT NOT NULL,
  tokens_duplicate HUGEINT NOT NULL
);

CREATE TABLE IF NOT EXISTS usage_daily (
  day DATE NOT NULL,
  app_id BIGINT NOT NULL,
  requests BIGINT NOT NULL,
  prompt_tokens BIGINT NOT NULL,
  completion_tokens BIGINT NOT NULL
);

-- Rejected rows as they were read. `row` is the line in a text file, the row number (from 1) in a binary one.
CREATE TABLE IF NOT EXISTS quarantine (
  day DATE NOT NULL,
  file VARCHAR NOT NULL,
  row BIGINT NOT NULL,
  reason VARCHAR NOT NULL,
  payload VARCHAR NOT NULL,
  rows BIGINT NOT NULL
);

-- The registry's winning rows, newest updated_at per app.
CREATE TABLE IF NOT EXISTS registry (
  app_id BIGINT NOT NULL,
  app_name VARCHAR,
  visibility VARCHAR NOT NULL,
  subcategories VARCHAR[] NOT NULL,
  alias_of BIGINT,
  updated_at TIMESTAMP NOT NULL,
  file VARCHAR NOT NULL,
  row BIGINT NOT NULL
);

-- Where the usage of each registered app counts, and whether that app is public.
CREATE TABLE IF NOT EXISTS resolved (
  app_id BIGINT NOT NULL,
  canonical_id BIGINT NOT NULL,
  published BOOLEAN NOT NULL
);

CREATE TABLE IF NOT EXISTS runs (
  started_at TIMESTAMPTZ NOT NULL,
  finished_at TIMESTAMPTZ NOT NULL,
  outcome VARCHAR NOT NULL,
  snapshot VARCHAR,
  report JSON NOT NULL
);

-- The settled files of app_daily, in DATA_DIR/kept/<id>, and up to which day in each of its two files; one row at most.
-- They are whole when both reach as far, and as they were while their checksums are the same. `shape` is what else
-- decides what is written.
CREATE TABLE IF NOT EXISTS kept_files (
  id VARCHAR NOT NULL,
  shape VARCHAR NOT NULL,
  database_through DATE NOT NULL,
  parquet_through DATE,
  checksums VARCHAR
);

-- What they were made from: the figures of their days, and where usage counted then, of the apps that were published.
CREATE TABLE IF NOT EXISTS kept_days (day DATE NOT NULL, content_hash VARCHAR NOT NULL);
CREATE TABLE IF NOT EXISTS kept_apps (app_id BIGINT NOT NULL, canonical_id BIGINT NOT NULL);

-- What the schema `fast` of the next snapshots takes over of the settled days: the first apps of each tag in their blocks,
-- for each level that was tried (see fast/no-tops.sql), and the tags that the apps had then.
CREATE TABLE IF NOT EXISTS kept_tops (
  level INTEGER NOT NULL,
  first_day DATE NOT NULL,
  last_day DATE NOT NULL,
  tag VARCHAR NOT NULL,
  by_total BIGINT[] NOT NULL,
  by_peak BIGINT[] NOT NULL,
  next_total DECIMAL(38, 0),
  next_peak DECIMAL(38, 0)
);
CREATE TABLE IF NOT EXISTS kept_tags (app_id BIGINT NOT NULL, subcategories VARCHAR[] NOT NULL);
