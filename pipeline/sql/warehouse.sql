-- The private warehouse: usage of every app per day, with ledger and quarantine. It can be rebuilt from raw/ at any time;
-- nothing in it is public.

-- One row per counted day. The same fingerprint means the same files, so the day is not read again.
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
  tokens_duplicate HUGEINT NOT NULL,
  -- Duplicates that differ in app or tokens from the row that counts.
  rows_conflicting BIGINT DEFAULT 0
);

CREATE TABLE IF NOT EXISTS usage_daily (
  day DATE NOT NULL,
  app_id BIGINT NOT NULL,
  requests BIGINT NOT NULL,
  prompt_tokens BIGINT NOT NULL,
  completion_tokens BIGINT NOT NULL
);

-- The models by the hash of their name, which takes less time and place than the name.
CREATE TABLE IF NOT EXISTS models (
  key UBIGINT NOT NULL,
  model VARCHAR NOT NULL
);

-- The part of usage_daily with a known model, or with tokens that are part of the two counts. The rest of usage_daily has no
-- known model.
CREATE TABLE IF NOT EXISTS usage_by_model (
  day DATE NOT NULL,
  app_id BIGINT NOT NULL,
  requests BIGINT NOT NULL,
  prompt_tokens BIGINT NOT NULL,
  completion_tokens BIGINT NOT NULL,
  reasoning_tokens BIGINT NOT NULL,
  cached_tokens BIGINT NOT NULL
);
-- A warehouse of version 1.0.0 has the name; all its days are counted again.
ALTER TABLE usage_by_model DROP COLUMN IF EXISTS model;
ALTER TABLE usage_by_model ADD COLUMN IF NOT EXISTS model_key UBIGINT;

-- Usage by provider: requests, requests with unknown tokens, and rows of requests that no provider served.
CREATE TABLE IF NOT EXISTS usage_by_provider (
  day DATE NOT NULL,
  provider VARCHAR,
  requests BIGINT NOT NULL,
  requests_without_tokens BIGINT NOT NULL,
  rows_failed BIGINT NOT NULL
);

-- Rejected rows, unchanged. `row` is the line in a text file, the row number (from 1) in a binary one.
CREATE TABLE IF NOT EXISTS quarantine (
  day DATE NOT NULL,
  file VARCHAR NOT NULL,
  row BIGINT NOT NULL,
  reason VARCHAR NOT NULL,
  payload VARCHAR NOT NULL,
  rows BIGINT NOT NULL
);

-- Apps that usage names by an address or a name, with the name seen first. The id follows from the identity.
-- `named_at` is the time of the earliest served row; NULL while there is none that may register the app.
CREATE TABLE IF NOT EXISTS app_names (
  app_id BIGINT NOT NULL,
  identity VARCHAR NOT NULL,
  app_name VARCHAR NOT NULL
);
ALTER TABLE app_names ADD COLUMN IF NOT EXISTS named_at TIMESTAMP;
ALTER TABLE app_names ADD COLUMN IF NOT EXISTS account_id VARCHAR;
ALTER TABLE app_names ADD COLUMN IF NOT EXISTS title VARCHAR;
ALTER TABLE app_names ADD COLUMN IF NOT EXISTS categories VARCHAR;

-- The registry's winning rows: the newest updated_at per app.
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

-- Each registered app's canonical app, and whether it is public.
CREATE TABLE IF NOT EXISTS resolved (
  app_id BIGINT NOT NULL,
  canonical_id BIGINT NOT NULL,
  published BOOLEAN NOT NULL
);

-- The same for the newest published snapshot: it explains why the next one differs.
CREATE TABLE IF NOT EXISTS published_apps (
  snapshot VARCHAR NOT NULL,
  app_id BIGINT NOT NULL,
  canonical_id BIGINT NOT NULL,
  published BOOLEAN NOT NULL
);

-- The days of the newest published snapshot and a hash of the rules that made it: the next one takes over what is the same.
CREATE TABLE IF NOT EXISTS published_counts (
  snapshot VARCHAR NOT NULL,
  day DATE NOT NULL,
  content_hash VARCHAR NOT NULL,
  rules VARCHAR NOT NULL
);
