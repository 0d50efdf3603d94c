-- An app that rows name in several spellings has several counts of a day on the cluster: here it gets one.
CREATE OR REPLACE TEMP TABLE counted AS
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
FROM counted AS c
GROUP BY c.day, c.app_id, c.model;

CREATE OR REPLACE TEMP TABLE repeated AS
SELECT
  r.day,
  r.app_id,
  r.model,
  CAST(sum(r.rows) AS BIGINT) AS rows,
  CAST(sum(r.rows_without_tokens) AS BIGINT) AS rows_without_tokens,
  CAST(sum(r.requests) AS BIGINT) AS requests,
  sum(r.prompt_tokens) AS prompt_tokens,
  sum(r.completion_tokens) AS completion_tokens,
  sum(r.reasoning_tokens) AS reasoning_tokens,
  sum(r.cached_tokens) AS cached_tokens
FROM repeated AS r
GROUP BY r.day, r.app_id, r.model;

CREATE OR REPLACE TEMP TABLE winners AS
SELECT
  w.day,
  w.app_id,
  w.model,
  CAST(sum(w.rows) AS BIGINT) AS rows,
  CAST(sum(w.rows_without_tokens) AS BIGINT) AS rows_without_tokens,
  CAST(sum(w.requests) AS BIGINT) AS requests,
  sum(w.prompt_tokens) AS prompt_tokens,
  sum(w.completion_tokens) AS completion_tokens,
  sum(w.reasoning_tokens) AS reasoning_tokens,
  sum(w.cached_tokens) AS cached_tokens
FROM winners AS w
GROUP BY w.day, w.app_id, w.model;
