-- Empty tables for the counts of a cluster, with the columns of count.sql and validated.sql. Duplicates are all rows of a
-- repeated request_id except the one that counts.
CREATE OR REPLACE TEMP TABLE counted (
  day DATE NOT NULL,
  app_id BIGINT,
  model VARCHAR,
  rows BIGINT NOT NULL,
  rows_without_tokens BIGINT NOT NULL,
  requests BIGINT NOT NULL,
  prompt_tokens HUGEINT NOT NULL,
  completion_tokens HUGEINT NOT NULL,
  reasoning_tokens HUGEINT NOT NULL,
  cached_tokens HUGEINT NOT NULL
);
CREATE OR REPLACE TEMP TABLE repeated AS FROM counted LIMIT 0;
CREATE OR REPLACE TEMP TABLE winners AS FROM counted LIMIT 0;
CREATE OR REPLACE TEMP TABLE conflicting (day DATE NOT NULL, rows BIGINT NOT NULL);
-- The cluster reports conflicts only as a number per day.
CREATE OR REPLACE TEMP VIEW duplicates AS
SELECT
  r.day,
  r.app_id,
  r.model,
  r.rows - coalesce(w.rows, 0) AS rows,
  r.rows_without_tokens - coalesce(w.rows_without_tokens, 0) AS rows_without_tokens,
  r.requests - coalesce(w.requests, 0) AS requests,
  r.prompt_tokens - coalesce(w.prompt_tokens, 0) AS prompt_tokens,
  r.completion_tokens - coalesce(w.completion_tokens, 0) AS completion_tokens,
  r.reasoning_tokens - coalesce(w.reasoning_tokens, 0) AS reasoning_tokens,
  r.cached_tokens - coalesce(w.cached_tokens, 0) AS cached_tokens,
  CAST(0 AS BIGINT) AS conflicts
FROM repeated AS r
LEFT JOIN winners AS w ON w.day = r.day AND w.app_id = r.app_id AND w.model IS NOT DISTINCT FROM r.model
UNION ALL
SELECT c.day, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, c.rows
FROM conflicting AS c;
CREATE OR REPLACE TEMP TABLE rejected_rows (
  day DATE NOT NULL,
  file VARCHAR NOT NULL,
  row BIGINT NOT NULL,
  reason VARCHAR NOT NULL,
  payload VARCHAR NOT NULL,
  rows BIGINT NOT NULL
);
CREATE OR REPLACE TEMP VIEW rejected AS FROM rejected_rows;
