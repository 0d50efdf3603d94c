-- The table of raw usage on a ClickHouse cluster (USAGE_SOURCE, version 24.8 or newer), for each shard; for operators.
-- Before a run counts, it pulls each day that changed here into the drop folder. Columns are as in data/README.md#usage;
-- all but ts, the two token counts and one of app_id and app may be left out, and further ones are ignored. Integers may
-- have any width and may be Nullable. Partitions by UTC day show which days changed; a table by month is pulled by months.
CREATE TABLE usage_rows
(
  ts DateTime('UTC') CODEC(Delta, ZSTD),
  app_id Nullable(Int64),
  app LowCardinality(String),
  prompt_tokens Nullable(Int64) CODEC(T64, ZSTD),
  completion_tokens Nullable(Int64) CODEC(T64, ZSTD),
  requests Nullable(Int64) CODEC(T64, ZSTD),
  request_id String CODEC(ZSTD),
  model LowCardinality(String),
  provider LowCardinality(String),
  account_id LowCardinality(String),
  app_title LowCardinality(String),
  app_categories LowCardinality(String),
  reasoning_tokens Nullable(Int64) CODEC(T64, ZSTD),
  cached_tokens Nullable(Int64) CODEC(T64, ZSTD)
)
ENGINE = MergeTree()
PARTITION BY toYYYYMMDD(ts)
ORDER BY (ifNull(app_id, 0), app, model, ts)
-- A block that is inserted again after an error counts once. A Replicated table does this by itself.
SETTINGS non_replicated_deduplication_window = 1000;

-- One address for all shards; `production` is the name of the cluster in the servers' configuration. Rows with one
-- request_id meet on one shard; rows without are spread over all.
CREATE TABLE usage AS usage_rows
ENGINE = Distributed(production, currentDatabase(), usage_rows, if(request_id = '', rand64(), cityHash64(request_id)));

-- What the user of USAGE_SOURCE needs. A profile with readonly = 1 is enough, if its limits throw (the default); with
-- cancel_http_readonly_queries_on_client_close = 1 it ends the query of a run that was stopped.
-- GRANT SELECT ON usage TO pipeline;
-- GRANT SELECT ON usage_rows TO pipeline;
-- GRANT SELECT ON system.tables TO pipeline;
-- GRANT SELECT ON system.parts TO pipeline;
-- GRANT SELECT ON system.clusters TO pipeline;
-- GRANT REMOTE ON *.* TO pipeline;
-- GRANT CREATE TEMPORARY TABLE ON *.* TO pipeline;
