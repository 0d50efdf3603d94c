-- Replaces the figures of the days in the list `days` by what was counted, duplicates taken off: a view, since to write a
-- million rows down takes longer than to look at them twice.
CREATE OR REPLACE TEMP VIEW net AS
SELECT
  c.day,
  c.app_id,
  c.requests - coalesce(d.requests, 0) AS requests,
  c.prompt_tokens - coalesce(d.prompt_tokens, 0) AS prompt_tokens,
  c.completion_tokens - coalesce(d.completion_tokens, 0) AS completion_tokens
FROM counted AS c
LEFT JOIN duplicates AS d ON d.day = c.day AND d.app_id = c.app_id
WHERE c.app_id IS NOT NULL AND c.rows > coalesce(d.rows, 0) AND list_contains(getvariable('days'), c.day);

-- The bounds let the reader pass over the history around the days.
DELETE FROM usage_daily
WHERE day BETWEEN list_min(getvariable('days')) AND list_max(getvariable('days'))
  AND list_contains(getvariable('days'), day);

-- In the order of the apps: the file is a fifth smaller, and the sort of the snapshot's history a fifth faster.
INSERT INTO usage_daily
SELECT n.day, n.app_id, n.requests, n.prompt_tokens, n.completion_tokens
FROM net AS n
ORDER BY n.day, n.app_id;

DELETE FROM days WHERE list_contains(getvariable('days'), day);
INSERT INTO days
WITH accepted AS (
  SELECT unnest(getvariable('days')) AS day, unnest(getvariable('fingerprints')) AS fingerprint
),
content AS (
  -- Equal figures give an equal hash, whatever files they came from.
  SELECT
    n.day,
    concat_ws(
      ' ', count(*), sum(n.requests), sum(n.prompt_tokens), sum(n.completion_tokens),
      bit_xor(hash(n.app_id, n.requests, n.prompt_tokens, n.completion_tokens))
    ) AS hash
  FROM net AS n
  GROUP BY n.day
),
read AS (
  SELECT
    c.day,
    sum(c.rows) AS rows,
    sum(c.rows) FILTER (c.app_id IS NULL) AS rejected,
    sum(c.rows_without_tokens) AS without_tokens,
    sum(c.prompt_tokens) + sum(c.completion_tokens) AS tokens,
    sum(c.prompt_tokens + c.completion_tokens) FILTER (c.app_id IS NULL) AS tokens_rejected
  FROM counted AS c
  GROUP BY c.day
),
twice AS (
  SELECT
    d.day,
    sum(d.rows) AS rows,
    sum(d.rows_without_tokens) AS without_tokens,
    sum(d.prompt_tokens) + sum(d.completion_tokens) AS tokens,
    sum(d.conflicts) AS conflicts
  FROM duplicates AS d
  GROUP BY d.day
)
SELECT
  a.day,
  a.fingerprint,
  coalesce(c.hash, '0'),
  getvariable('counted_at'),
  coalesce(r.rows, 0),
  coalesce(r.rejected, 0),
  coalesce(t.rows, 0),
  coalesce(r.without_tokens, 0) - coalesce(t.without_tokens, 0),
  coalesce(r.tokens, 0),
  coalesce(r.tokens_rejected, 0),
  coalesce(t.tokens, 0),
  coalesce(t.conflicts, 0)
FROM accepted AS a
LEFT JOIN content AS c ON c.day = a.day
LEFT JOIN read AS r ON r.day = a.day
LEFT JOIN twice AS t ON t.day = a.day;
