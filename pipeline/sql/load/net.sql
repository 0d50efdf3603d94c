-- Subtracts duplicates from the counts, and adds each day up. Most days have none, and then no count is written.
UPDATE counted AS c
SET
  rows = c.rows - d.rows,
  rows_without_tokens = c.rows_without_tokens - d.rows_without_tokens,
  requests = c.requests - d.requests,
  prompt_tokens = c.prompt_tokens - d.prompt_tokens,
  completion_tokens = c.completion_tokens - d.completion_tokens,
  reasoning_tokens = c.reasoning_tokens - d.reasoning_tokens,
  cached_tokens = c.cached_tokens - d.cached_tokens
FROM duplicates AS d
WHERE d.day = c.day AND d.app_id = c.app_id AND d.model IS NOT DISTINCT FROM c.model;

DELETE FROM counted AS c
WHERE c.rows = 0;

CREATE OR REPLACE TEMP TABLE day_totals AS
WITH net AS (
  SELECT
    c.day,
    sum(c.rows) AS rows,
    coalesce(sum(c.rows) FILTER (c.app_id IS NULL), 0) AS rejected,
    sum(c.rows_without_tokens) AS without_tokens,
    sum(c.prompt_tokens) + sum(c.completion_tokens) AS tokens,
    coalesce(sum(c.prompt_tokens + c.completion_tokens) FILTER (c.app_id IS NULL), 0) AS tokens_rejected,
    coalesce(
      greatest(
        sum(c.prompt_tokens) FILTER (c.app_id IS NOT NULL), sum(c.completion_tokens) FILTER (c.app_id IS NOT NULL)
      ) > 9223372036854775807,
      false
    ) AS wide,
    -- Equal figures give an equal hash, whatever files they came from.
    concat_ws(
      ' ', count(c.app_id), sum(c.requests), sum(c.prompt_tokens) FILTER (c.app_id IS NOT NULL),
      sum(c.completion_tokens) FILTER (c.app_id IS NOT NULL),
      bit_xor(
        hash(c.app_id, c.model, c.requests, CAST(c.prompt_tokens AS HUGEINT), CAST(c.completion_tokens AS HUGEINT))
      ) FILTER (c.app_id IS NOT NULL)
    ) AS hash
  FROM counted AS c
  GROUP BY c.day
),
twice AS (
  SELECT
    d.day,
    sum(d.rows) AS rows,
    sum(d.prompt_tokens) + sum(d.completion_tokens) AS tokens,
    sum(d.conflicts) AS conflicts
  FROM duplicates AS d
  GROUP BY d.day
)
SELECT
  n.day,
  n.hash,
  n.rows + coalesce(t.rows, 0) AS rows_read,
  n.rejected AS rows_rejected,
  coalesce(t.rows, 0) AS rows_duplicate,
  n.without_tokens AS rows_without_tokens,
  n.tokens + coalesce(t.tokens, 0) AS tokens_read,
  n.tokens_rejected,
  coalesce(t.tokens, 0) AS tokens_duplicate,
  coalesce(t.conflicts, 0) AS rows_conflicting,
  n.wide
FROM net AS n
LEFT JOIN twice AS t ON t.day = n.day;
