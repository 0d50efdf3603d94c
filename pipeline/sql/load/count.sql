-- Counts the rows of the view `incoming`. count.ts makes the table `groups` from it: the rows by file, validity, app, model and
-- provider.

-- name: suspects
-- Files of rows that have no row number yet, and hold an invalid row or other rows than lines.
SELECT g.file
FROM groups AS g
GROUP BY g.file
HAVING NOT bool_and(g.valid)
  OR sum(g.read) <> (SELECT f.lines FROM day_files AS f WHERE f.file = g.file AND f.lines IS NOT NULL)
UNION
SELECT f.file
FROM day_files AS f
WHERE f.lines > 0 AND f.file NOT IN (SELECT g.file FROM groups AS g);

-- name: unknown-files
-- Files with rows that name no app or no tokens.
SELECT DISTINCT g.file
FROM groups AS g
WHERE g.unknown OR g.app = '';

-- name: texts
-- The texts that name apps, in the order in which they were seen first.
SELECT g.app
FROM groups AS g
WHERE g.valid AND g.app <> ''
GROUP BY g.app
ORDER BY min(g.seen_at), g.app;

-- name: new-texts
-- The texts of apps that are new, or that are named earlier than so far known.
CREATE OR REPLACE TEMP TABLE new_texts AS
SELECT n.text, n.app_id
FROM named_apps AS n
JOIN groups AS g ON g.app = n.text AND g.valid
LEFT JOIN app_names AS a ON a.app_id = n.app_id
GROUP BY n.text, n.app_id
HAVING bool_or(a.app_id IS NULL) OR min(g.served_at) < min(coalesce(a.named_at, TIMESTAMP 'infinity'));

-- name: claims
-- Those texts by account: when an account named the app first, and what its earliest served rows say about the app.
CREATE OR REPLACE TEMP TABLE claims AS
SELECT
  t.app_id,
  i.account_id,
  min(i.ts) FILTER (i.requests > 0) AS named_at,
  min({ served_at: i.ts, text: i.app_title }) FILTER (i.requests > 0 AND trim(i.app_title) <> '') AS title,
  min({ served_at: i.ts, text: i.app_categories }) FILTER (i.requests > 0 AND i.app_categories IS NOT NULL) AS categories
FROM incoming AS i
JOIN new_texts AS t ON t.text = i.app
WHERE violation(
  i.day, i.fault, i.ts, i.app_id, i.app, i.prompt_tokens, i.completion_tokens, i.requests, i.row_count
) IS NULL
GROUP BY t.app_id, i.account_id;

-- name: store-claims
-- Stores the apps. The first text that names an app is its spelling; the account that named it first decides its title and
-- categories.
MERGE INTO app_names AS a
USING (
  WITH first_accounts AS (
    SELECT
      c.app_id,
      c.account_id,
      c.named_at,
      struct_extract(c.title, 'text') AS title,
      struct_extract(c.categories, 'text') AS categories
    FROM claims AS c
    QUALIFY row_number() OVER (PARTITION BY c.app_id ORDER BY c.named_at NULLS LAST, c.account_id) = 1
  )
  SELECT f.*, n.identity, n.app_name
  FROM first_accounts AS f
  JOIN named_apps AS n ON n.app_id = f.app_id AND n.is_first
) AS f ON f.app_id = a.app_id
WHEN MATCHED AND f.named_at < coalesce(a.named_at, TIMESTAMP 'infinity') THEN UPDATE SET
  named_at = f.named_at, account_id = f.account_id, title = f.title, categories = f.categories
WHEN NOT MATCHED THEN INSERT (app_id, identity, app_name, named_at, account_id, title, categories)
  VALUES (f.app_id, f.identity, f.app_name, f.named_at, f.account_id, f.title, f.categories);

-- name: rejected
-- The rejected rows, for the quarantine.
CREATE OR REPLACE TEMP TABLE rejected AS
WITH validated AS (
  SELECT
    i.*,
    violation(
      i.day, i.fault, i.ts, i.app_id, i.app, i.prompt_tokens, i.completion_tokens, i.requests, i.row_count
    ) AS reason
  FROM incoming AS i
)
SELECT
  v.day,
  f.name AS file,
  v.row,
  v.reason,
  v.payload,
  greatest(v.row_count, 1) AS rows,
  greatest(v.prompt_tokens, 0) AS prompt_tokens,
  greatest(v.completion_tokens, 0) AS completion_tokens
FROM validated AS v
JOIN day_files AS f ON f.file = v.file
WHERE v.reason IS NOT NULL;

-- name: nothing-rejected
CREATE OR REPLACE TEMP TABLE rejected (
  day DATE, file VARCHAR, row BIGINT, reason VARCHAR, payload VARCHAR, rows BIGINT, prompt_tokens BIGINT,
  completion_tokens BIGINT
);

-- name: collisions
-- Rows that repeat a request_id of the same day: one counts, by its precedence; the others are subtracted from the counts of
-- their app and model. Most days have none, and then only this step costs time: it reads no other column.
CREATE OR REPLACE TEMP TABLE hash_collisions AS
SELECT i.day, hash(i.request_id) AS key
FROM incoming AS i
WHERE i.request_id IS NOT NULL
GROUP BY i.day, key
HAVING count(*) > 1;

-- name: repeated-ids
-- The ids among them that truly repeat.
CREATE OR REPLACE TEMP TABLE repeated_ids AS
SELECT i.day, i.request_id, sum(i.row_count) AS rows
FROM incoming AS i
SEMI JOIN hash_collisions AS c ON c.day = i.day AND c.key = hash(i.request_id)
GROUP BY i.day, i.request_id
HAVING count(*) > 1;

-- name: shared-ids
-- An id on more than half of the rows of a day is none: each of them would count as the same request. A request that was
-- delivered a few times makes no such day.
SELECT CAST(r.day AS VARCHAR) AS day, r.request_id, CAST(r.rows AS VARCHAR) AS rows
FROM repeated_ids AS r
JOIN (
  SELECT f.day, sum(g.rows) AS rows
  FROM groups AS g
  JOIN day_files AS f ON f.file = g.file
  GROUP BY f.day
) AS d ON d.day = r.day
WHERE r.rows > d.rows / 2 AND r.rows >= 5;

-- name: repeats
-- The repeating rows beside those that count: the latest, then the one with the largest values.
CREATE OR REPLACE TEMP TABLE repeats AS
WITH repeated AS (
  SELECT
    i.* REPLACE (
      CASE WHEN i.app IS NULL THEN i.app_id ELSE coalesce(n.app_id, 0) END AS app_id,
      model_from_text(i.model) AS model,
      CASE WHEN len(i.provider) <= 100 THEN i.provider END AS provider,
      CASE WHEN i.reasoning_tokens BETWEEN 0 AND i.completion_tokens THEN i.reasoning_tokens END AS reasoning_tokens,
      CASE WHEN i.cached_tokens BETWEEN 0 AND i.prompt_tokens THEN i.cached_tokens END AS cached_tokens
    )
  FROM incoming AS i
  SEMI JOIN repeated_ids AS r ON r.day = i.day AND r.request_id = i.request_id
  LEFT JOIN named_apps AS n ON n.text = i.app
  WHERE violation(
    i.day, i.fault, i.ts, i.app_id, i.app, i.prompt_tokens, i.completion_tokens, i.requests, i.row_count
  ) IS NULL
),
placed AS (
  SELECT
    r.*,
    row_number() OVER (
      PARTITION BY r.day, r.request_id
      ORDER BY r.ts DESC, r.app_id DESC, r.prompt_tokens DESC NULLS LAST, r.completion_tokens DESC NULLS LAST, r.requests DESC,
        coalesce(r.model, '') DESC, coalesce(r.reasoning_tokens, 0) DESC, coalesce(r.cached_tokens, 0) DESC
    ) AS place
  FROM repeated AS r
)
-- A redelivered request has the same values; a row with another app or other tokens conflicts with the row that counts.
SELECT
  p.day, p.app_id, p.model, p.provider, p.row_count, p.requests, p.prompt_tokens, p.completion_tokens, p.reasoning_tokens,
  p.cached_tokens,
  (p.app_id, p.prompt_tokens, p.completion_tokens)
    IS DISTINCT FROM (w.app_id, w.prompt_tokens, w.completion_tokens) AS conflicts
FROM placed AS p
JOIN placed AS w ON w.day = p.day AND w.request_id = p.request_id AND w.place = 1
WHERE p.place > 1;

-- name: no-repeats
CREATE OR REPLACE TEMP TABLE repeats (
  day DATE, app_id BIGINT, model VARCHAR, provider VARCHAR, row_count BIGINT, requests BIGINT, prompt_tokens BIGINT,
  completion_tokens BIGINT, reasoning_tokens BIGINT, cached_tokens BIGINT, conflicts BOOLEAN
);

-- name: counted
-- The counts per day, app and model; app_id NULL holds a day's rejected rows.
CREATE OR REPLACE TEMP TABLE valid_groups AS
SELECT
  g.* EXCLUDE (app_id, model, provider),
  f.day,
  CASE WHEN g.app IS NULL THEN g.app_id ELSE coalesce(n.app_id, 0) END AS app_id,
  model_from_text(g.model) AS model,
  CASE WHEN len(g.provider) <= 100 THEN g.provider END AS provider
FROM groups AS g
JOIN day_files AS f ON f.file = g.file
LEFT JOIN named_apps AS n ON n.text = g.app
WHERE g.valid;

CREATE OR REPLACE TEMP TABLE counted AS
SELECT
  g.day,
  g.app_id,
  g.model,
  CAST(sum(g.rows) AS BIGINT) AS rows,
  CAST(coalesce(sum(g.rows) FILTER (g.unknown), 0) AS BIGINT) AS rows_without_tokens,
  CAST(sum(g.requests) AS BIGINT) AS requests,
  CAST(coalesce(sum(g.prompt_tokens), 0) AS HUGEINT) AS prompt_tokens,
  CAST(coalesce(sum(g.completion_tokens), 0) AS HUGEINT) AS completion_tokens,
  CAST(coalesce(sum(g.reasoning_tokens), 0) AS HUGEINT) AS reasoning_tokens,
  CAST(coalesce(sum(g.cached_tokens), 0) AS HUGEINT) AS cached_tokens
FROM valid_groups AS g
GROUP BY g.day, g.app_id, g.model
UNION ALL
SELECT
  r.day, NULL, NULL, CAST(sum(r.rows) AS BIGINT), 0, 0, CAST(coalesce(sum(r.prompt_tokens), 0) AS HUGEINT),
  CAST(coalesce(sum(r.completion_tokens), 0) AS HUGEINT), 0, 0
FROM rejected AS r
GROUP BY r.day;

CREATE OR REPLACE TEMP TABLE duplicates AS
SELECT
  p.day,
  p.app_id,
  p.model,
  CAST(sum(p.row_count) AS BIGINT) AS rows,
  CAST(coalesce(sum(p.row_count) FILTER (p.prompt_tokens IS NULL), 0) AS BIGINT) AS rows_without_tokens,
  CAST(sum(p.requests) AS BIGINT) AS requests,
  CAST(coalesce(sum(p.prompt_tokens), 0) AS HUGEINT) AS prompt_tokens,
  CAST(coalesce(sum(p.completion_tokens), 0) AS HUGEINT) AS completion_tokens,
  CAST(coalesce(sum(p.reasoning_tokens), 0) AS HUGEINT) AS reasoning_tokens,
  CAST(coalesce(sum(p.cached_tokens), 0) AS HUGEINT) AS cached_tokens,
  CAST(coalesce(sum(p.row_count) FILTER (p.conflicts), 0) AS BIGINT) AS conflicts
FROM repeats AS p
GROUP BY p.day, p.app_id, p.model;

-- Served requests by provider, those with unknown tokens, and rows of requests that no provider served.
CREATE OR REPLACE TEMP TABLE provider_counts AS
WITH rows AS (
  SELECT g.day, g.provider, g.requests, g.unknown, g.rows_failed
  FROM valid_groups AS g
  WHERE g.provider IS NOT NULL OR g.unknown
  UNION ALL
  SELECT
    r.day, r.provider, -r.requests, r.prompt_tokens IS NULL,
    CASE WHEN r.prompt_tokens IS NULL AND r.requests = 0 THEN -r.row_count ELSE 0 END
  FROM repeats AS r
  WHERE r.provider IS NOT NULL OR r.prompt_tokens IS NULL
)
SELECT
  r.day,
  r.provider,
  CAST(sum(r.requests) AS BIGINT) AS requests,
  CAST(coalesce(sum(r.requests) FILTER (r.unknown), 0) AS BIGINT) AS requests_without_tokens,
  CAST(coalesce(sum(r.rows_failed) FILTER (r.unknown), 0) AS BIGINT) AS rows_failed
FROM rows AS r
GROUP BY r.day, r.provider;

-- name: large-parts
-- Files with rows whose parts are more than the whole, so that the parts do not count.
SELECT f.name, CAST(sum(g.rows_large_parts) AS VARCHAR) AS rows
FROM groups AS g
JOIN day_files AS f ON f.file = g.file
WHERE g.valid
GROUP BY f.name
HAVING sum(g.rows_large_parts) > 0
ORDER BY f.name;
