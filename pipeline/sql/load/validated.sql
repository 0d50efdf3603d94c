-- The rows of the view `incoming` with their violation, and the rejected rows for the quarantine: views, so that unused
-- columns are not computed.
CREATE OR REPLACE TEMP VIEW validated AS
SELECT
  i.*,
  violation(i.day, i.fault, i.ts, i.app_id, i.prompt_tokens, i.completion_tokens, i.requests) AS violation
FROM incoming AS i;

CREATE OR REPLACE TEMP VIEW rejected AS
SELECT v.day, v.file, v.row, v.violation AS reason, v.payload, v.lines AS rows
FROM validated AS v
WHERE v.violation IS NOT NULL;

-- Rows that repeat a request_id of the same day: one counts, by its precedence; the others are subtracted from the counts of
-- their app and model. Most days have none, and then only the first step costs time.

-- Ids with a repeated 48-bit hash: after sorting, equal ones are neighbours. More bits would double the sort keys.
CREATE OR REPLACE TEMP TABLE hash_collisions AS
WITH hashes AS (
  SELECT id_high(i.request_id) AS high, id_low(i.request_id) AS low
  FROM incoming AS i
  WHERE i.request_id IS NOT NULL
  ORDER BY high, low
),
neighbours AS (
  SELECT h.high, h.low, lag(h.high) OVER () AS high_above, lag(h.low) OVER () AS low_above
  FROM hashes AS h
)
SELECT DISTINCT n.high, n.low
FROM neighbours AS n
WHERE n.high = n.high_above AND n.low = n.low_above;

-- Ids among them that truly repeat; this reads no other columns.
CREATE OR REPLACE TEMP TABLE repeated_ids AS
SELECT i.day, i.request_id
FROM incoming AS i
SEMI JOIN hash_collisions AS c ON c.high = id_high(i.request_id) AND c.low = id_low(i.request_id)
WHERE i.request_id IS NOT NULL
GROUP BY i.day, i.request_id
HAVING count(*) > 1;

CREATE OR REPLACE TEMP TABLE repeats AS
WITH repeated AS (
  SELECT v.*
  FROM validated AS v
  SEMI JOIN repeated_ids AS r ON r.day = v.day AND r.request_id = v.request_id
  WHERE v.violation IS NULL
),
placed AS (
  SELECT
    r.*,
    row_number() OVER (
      PARTITION BY r.day, r.request_id
      ORDER BY precedence(
        r.ts, r.below_microsecond, r.app_id, r.prompt_tokens, r.completion_tokens, r.requests,
        r.model, r.reasoning_tokens, r.cached_tokens
      ) DESC
    ) AS place
  FROM repeated AS r
),
-- A redelivered request has the same values; a row with another app or other tokens conflicts with the row that counts.
compared AS (
  SELECT
    p.*,
    (p.app_id, p.prompt_tokens, p.completion_tokens)
      IS DISTINCT FROM (w.app_id, w.prompt_tokens, w.completion_tokens) AS conflicts
  FROM placed AS p
  JOIN placed AS w ON w.day = p.day AND w.request_id = p.request_id AND w.place = 1
  WHERE p.place > 1
)
SELECT
  c.day,
  c.app_id,
  c.model,
  c.provider,
  c.requests,
  c.prompt_tokens,
  c.completion_tokens,
  c.reasoning_tokens,
  c.cached_tokens,
  c.conflicts
FROM compared AS c;

CREATE OR REPLACE TEMP TABLE duplicates AS
SELECT
  p.day,
  p.app_id,
  p.model,
  count(*) AS rows,
  CAST(count(*) FILTER (p.prompt_tokens IS NULL) AS BIGINT) AS rows_without_tokens,
  CAST(sum(p.requests) AS BIGINT) AS requests,
  CAST(coalesce(sum(p.prompt_tokens), 0) AS HUGEINT) AS prompt_tokens,
  CAST(coalesce(sum(p.completion_tokens), 0) AS HUGEINT) AS completion_tokens,
  CAST(coalesce(sum(p.reasoning_tokens), 0) AS HUGEINT) AS reasoning_tokens,
  CAST(coalesce(sum(p.cached_tokens), 0) AS HUGEINT) AS cached_tokens,
  CAST(count(*) FILTER (p.conflicts) AS BIGINT) AS conflicts
FROM repeats AS p
GROUP BY p.day, p.app_id, p.model;
