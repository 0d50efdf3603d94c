-- The cluster counts each spelling of an app's name separately; this adds the counts up.
CREATE OR REPLACE TEMP MACRO by_app(counts) AS TABLE
SELECT
  c.day,
  c.app_id,
  c.model,
  CAST(sum(c.rows) AS BIGINT) AS rows,
  CAST(sum(c.rows_without_tokens) AS BIGINT) AS rows_without_tokens,
  CAST(sum(c.requests) AS BIGINT) AS requests,
  sum(c.prompt_tokens) AS prompt_tokens,
  sum(c.completion_tokens) AS completion_tokens,
  sum(c.reasoning_tokens) AS reasoning_tokens,
  sum(c.cached_tokens) AS cached_tokens
FROM query_table(counts) AS c
GROUP BY c.day, c.app_id, c.model;

CREATE OR REPLACE TEMP TABLE counted AS FROM by_app('counted');
CREATE OR REPLACE TEMP TABLE repeated AS FROM by_app('repeated');
CREATE OR REPLACE TEMP TABLE winners AS FROM by_app('winners');
