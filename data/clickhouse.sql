-- The table of raw usage on a ClickHouse cluster (USAGE_SOURCE), for each shard; for operators. The
-- pipeline reads it and, with `npm run nightly -- ship`, inserts chat's usage records. Partitions by UTC day show
-- which days changed. Further columns are ignored. `requests` and `request_id` may be left out. `app` (String) may
-- stand beside `app_id` or instead of it, for rows that name their app. The integers may be of any width up to 64 bits,
-- nullable or not. Usage records fill these columns, the last two where the table has them (ALTER TABLE …
-- ADD COLUMN brings an older one up to date): a text is empty where no provider served, a token count NULL where the
-- provider gave none. A Replicated table drops a repeated insert.
CREATE TABLE usage_rows
(
  ts DateTime('UTC'),
  app_id Nullable(Int64),
  prompt_tokens Nullable(Int64),
  completion_tokens Nullable(Int64),
  requests Nullable(Int64),
  request_id String,
  model String,
  provider String,
  account_id String,
  reasoning_tokens Nullable(Int64),
  cached_tokens Nullable(Int64)
)
ENGINE = MergeTree()
PARTITION BY toYYYYMMDD(ts)
ORDER BY (ts, request_id);

-- One address for all shards; `production` is the name of the cluster in the servers' configuration.
CREATE TABLE usage AS usage_rows
ENGINE = Distributed(production, default, usage_rows, cityHash64(request_id));
