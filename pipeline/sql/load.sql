-- The queries of the stage load, in the order of a run. sources/incoming.ts makes the view `incoming`, the raw rows of the days
-- being counted, and sources/groups.ts from it the view `groups`: rows by validity, app, model, provider and account.

-- name: counted-days
-- The counted days with the fingerprint of their files. It is empty for a day with too many rejected rows, which are kept in
-- the quarantine all the same.
SELECT CAST(d.day AS VARCHAR) AS day, d.fingerprint
FROM days AS d
UNION ALL
SELECT DISTINCT CAST(q.day AS VARCHAR), ''
FROM quarantine AS q
WHERE NOT EXISTS (FROM days AS d WHERE d.day = q.day);

-- name: plain-groups
-- Whether the groups with few keys count every row: all are plain, and no sum exceeds 2^63.
SELECT NOT EXISTS (
  FROM groups AS g WHERE (g.app_id | g.requests | g.prompt_tokens | g.completion_tokens) IS NULL
) AS plain;

-- name: odd-groups
-- Whether some row is rejected, and whether a served row names no app or no tokens: a key of it may be missing.
SELECT
  count(*) > count(g.has_tokens) AS rejected,
  coalesce(bool_or(NOT g.has_tokens AND g.requests > 0 OR g.app = ''), false) AS doubtful
FROM groups AS g;

-- name: rejected-files
-- The files with rejected rows of which DuckDB does not know the numbers.
SELECT DISTINCT i.file
FROM incoming AS i
WHERE i.row IS NULL AND i.violation IS NOT NULL;

-- name: texts
-- The texts that name apps, in the order in which they were seen first.
SELECT '=' || g.app AS app
FROM groups AS g
WHERE g.has_tokens IS NOT NULL AND g.app <> ''
GROUP BY g.app
ORDER BY min(g.seen_at), g.app;

-- name: named-apps
-- Stores the apps that groups name. The first text that names an app is its spelling; the account that named it first decides
-- its title and categories, by its earliest rows that have some.
MERGE INTO app_names AS a
USING (
  WITH claims AS (
    SELECT
      n.app_id,
      g.account_id,
      min(g.served_at) AS named_at,
      min({ served_at: g.served_at, text: g.app_title })
        FILTER (g.served_at IS NOT NULL AND trim(g.app_title) <> '') AS title,
      min({ served_at: g.served_at, text: g.app_categories })
        FILTER (g.served_at IS NOT NULL AND g.app_categories IS NOT NULL) AS categories
    FROM groups AS g
    JOIN named_apps AS n ON n.text = g.app
    WHERE g.has_tokens IS NOT NULL
    GROUP BY n.app_id, g.account_id
  ),
  first_accounts AS (
    SELECT c.* REPLACE (struct_extract(c.title, 'text') AS title, struct_extract(c.categories, 'text') AS categories)
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
-- The rejected rows, for the quarantine. Most days have none, and then no file is read.
SET VARIABLE has_rejected = (SELECT count(*) > count(g.has_tokens) FROM groups AS g);

CREATE OR REPLACE TEMP TABLE rejected AS
SELECT
  i.day,
  f.name AS file,
  i.row,
  i.violation AS reason,
  i.payload,
  greatest(i.row_count, 1) AS rows,
  greatest(i.prompt_tokens, 0) AS prompt_tokens,
  greatest(i.completion_tokens, 0) AS completion_tokens
FROM incoming AS i
JOIN day_files AS f ON f.file = i.file
WHERE getvariable('has_rejected') AND i.violation IS NOT NULL;

-- name: repeated-ids
-- Rows that repeat a request_id of the same day: one counts, by its precedence; the others are subtracted from the counts of
-- their app and model. Most days have none, and then only the first query costs time: it reads no other column.
-- A sort finds equal hashes in half the time and memory of a GROUP BY.
CREATE OR REPLACE TEMP TABLE hash_collisions AS
SELECT DISTINCT s.key
FROM (SELECT i.key, lead(i.key) OVER (ORDER BY i.key) AS next_key FROM ids AS i) AS s
WHERE s.key = s.next_key;

CREATE OR REPLACE TEMP TABLE repeated_ids AS
SELECT i.day, i.request_id, sum(i.row_count) AS rows
FROM incoming AS i
SEMI JOIN hash_collisions AS c ON c.key = hash(i.day, i.request_id)
GROUP BY i.day, i.request_id
HAVING count(*) > 1;

-- name: shared-ids
-- An id on more than half of the rows of a day is none: each of them would count as the same request. A request that was
-- delivered a few times makes no such day.
SELECT
  format(
    'Day {}: {} rows, more than half of the day, have the request_id "{}"; they would count as one request. Correct or remove '
      || 'the column request_id',
    r.day, r.rows, r.request_id
  ) AS message
FROM repeated_ids AS r
WHERE r.rows >= 5 AND r.rows > (SELECT sum(g.rows) FROM groups AS g WHERE g.day = r.day) / 2;

-- name: repeats
-- The repeating rows beside those that count: the latest, then the one with the largest values.
CREATE OR REPLACE TEMP TABLE repeats AS
WITH repeated AS (
  SELECT
    i.* REPLACE (
      CASE WHEN i.app IS NULL THEN i.app_id ELSE coalesce(n.app_id, 0) END AS app_id,
      model_from_text(i.model) AS model,
      provider_from_text(i.provider) AS provider,
      CASE WHEN i.reasoning_tokens BETWEEN 0 AND i.completion_tokens THEN i.reasoning_tokens END AS reasoning_tokens,
      CASE WHEN i.cached_tokens BETWEEN 0 AND i.prompt_tokens THEN i.cached_tokens END AS cached_tokens
    )
  FROM incoming AS i
  SEMI JOIN repeated_ids AS r ON r.day = i.day AND r.request_id = i.request_id
  LEFT JOIN named_apps AS n ON n.text = i.app
  WHERE i.violation IS NULL
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

-- name: valid-rows
-- The counts of valid rows without duplicates.
CREATE OR REPLACE TEMP VIEW valid_rows AS
SELECT
  g.day,
  CASE WHEN g.app IS NULL THEN g.app_id ELSE coalesce(n.app_id, 0) END AS app_id,
  g.model_key,
  provider_from_text(g.provider) AS provider,
  g.has_tokens, g.rows, g.requests, g.prompt_tokens, g.completion_tokens, g.reasoning_tokens, g.cached_tokens, g.rows_failed
FROM groups AS g
LEFT JOIN named_apps AS n ON n.text = g.app
WHERE g.has_tokens IS NOT NULL
UNION ALL
SELECT
  r.day, r.app_id, hash(r.model), r.provider, r.prompt_tokens IS NOT NULL, -r.row_count, -r.requests, -r.prompt_tokens,
  -r.completion_tokens, -r.reasoning_tokens, -r.cached_tokens,
  CASE WHEN r.requests = 0 THEN -r.row_count ELSE 0 END
FROM repeats AS r;

-- name: groups-apart
-- Whether groups by app and model count as they are: every row is valid and has tokens, no text of a model is the variant of
-- another, and nothing is repeated.
SELECT
  NOT EXISTS (FROM groups AS g WHERE g.has_tokens IS NOT TRUE)
    AND count(*) = count(DISTINCT coalesce(t.model, ''))
    AND NOT EXISTS (FROM repeats) AS apart
FROM model_texts AS t;

-- name: groups-as-counted
-- The groups, if they are apart.
CREATE OR REPLACE TEMP VIEW counted AS
SELECT
  g.day, g.app_id, g.model_key, g.rows, 0 AS rows_without_tokens, CAST(g.requests AS BIGINT) AS requests, g.prompt_tokens,
  g.completion_tokens, g.reasoning_tokens, g.cached_tokens
FROM groups AS g;

-- name: counted
-- The counts per day, app and model; app_id NULL holds a day's rejected rows.
CREATE OR REPLACE TEMP TABLE sums AS
SELECT
  v.day,
  v.app_id,
  v.model_key,
  CAST(sum(v.rows) AS BIGINT) AS rows,
  CAST(coalesce(sum(v.rows) FILTER (NOT v.has_tokens), 0) AS BIGINT) AS rows_without_tokens,
  CAST(sum(v.requests) AS BIGINT) AS requests,
  CAST(coalesce(sum(v.prompt_tokens), 0) AS HUGEINT) AS prompt_tokens,
  CAST(coalesce(sum(v.completion_tokens), 0) AS HUGEINT) AS completion_tokens,
  CAST(coalesce(sum(v.reasoning_tokens), 0) AS HUGEINT) AS reasoning_tokens,
  CAST(coalesce(sum(v.cached_tokens), 0) AS HUGEINT) AS cached_tokens
FROM valid_rows AS v
GROUP BY v.day, v.app_id, v.model_key
HAVING sum(v.rows) > 0
UNION ALL
SELECT
  r.day, NULL, NULL, CAST(sum(r.rows) AS BIGINT), 0, 0, CAST(coalesce(sum(r.prompt_tokens), 0) AS HUGEINT),
  CAST(coalesce(sum(r.completion_tokens), 0) AS HUGEINT), 0, 0
FROM rejected AS r
GROUP BY r.day;

CREATE OR REPLACE TEMP VIEW counted AS FROM sums;

-- name: totals
-- Served requests by provider, those with unknown tokens, and rows of requests that no provider served.
CREATE OR REPLACE TEMP TABLE provider_counts AS
SELECT
  v.day,
  v.provider,
  CAST(sum(v.requests) AS BIGINT) AS requests,
  CAST(coalesce(sum(v.requests) FILTER (NOT v.has_tokens), 0) AS BIGINT) AS requests_without_tokens,
  CAST(coalesce(sum(v.rows_failed) FILTER (NOT v.has_tokens), 0) AS BIGINT) AS rows_failed
FROM valid_rows AS v
WHERE v.provider IS NOT NULL OR NOT v.has_tokens
GROUP BY v.day, v.provider;

-- The figures of the days in the list `days`, and whether their tokens of one kind pass 2^63.
CREATE OR REPLACE TEMP TABLE day_totals AS
WITH net AS (
  SELECT
    c.day,
    sum(c.rows) AS rows,
    sum(c.rows) FILTER (c.app_id IS NULL) AS rejected,
    sum(c.rows_without_tokens) AS without_tokens,
    sum(c.prompt_tokens) FILTER (c.app_id IS NULL) + sum(c.completion_tokens) FILTER (c.app_id IS NULL) AS tokens_rejected,
    coalesce(sum(c.prompt_tokens) FILTER (c.app_id IS NOT NULL), 0) AS prompt,
    coalesce(sum(c.completion_tokens) FILTER (c.app_id IS NOT NULL), 0) AS completion,
    -- Equal figures give an equal hash, whatever files they came from.
    concat_ws(
      ' ', count(c.app_id), sum(c.requests), prompt, completion,
      bit_xor(
        hash(c.app_id, c.model_key, c.requests, CAST(c.prompt_tokens AS HUGEINT), CAST(c.completion_tokens AS HUGEINT))
      ) FILTER (c.app_id IS NOT NULL)
    ) AS hash
  FROM counted AS c
  GROUP BY c.day
),
twice AS (
  SELECT
    r.day,
    sum(r.row_count) AS rows,
    coalesce(sum(r.prompt_tokens) + sum(r.completion_tokens), 0) AS tokens,
    sum(r.row_count) FILTER (r.conflicts) AS conflicts
  FROM repeats AS r
  GROUP BY r.day
)
SELECT
  a.day,
  coalesce(n.hash, '0') AS content_hash,
  coalesce(n.rows, 0) + coalesce(t.rows, 0) AS rows_read,
  coalesce(n.rejected, 0) AS rows_rejected,
  coalesce(t.rows, 0) AS rows_duplicate,
  coalesce(n.without_tokens, 0) AS rows_without_tokens,
  coalesce(n.prompt + n.completion, 0) + coalesce(n.tokens_rejected, 0) + coalesce(t.tokens, 0) AS tokens_read,
  coalesce(n.tokens_rejected, 0) AS tokens_rejected,
  coalesce(t.tokens, 0) AS tokens_duplicate,
  coalesce(t.conflicts, 0) AS rows_conflicting,
  coalesce(greatest(n.prompt, n.completion) > 9223372036854775807, false) AS wide
FROM (SELECT unnest(getvariable('days')) AS day) AS a
LEFT JOIN net AS n ON n.day = a.day
LEFT JOIN twice AS t ON t.day = a.day;

-- name: large-parts
-- Days with rows in which a part is more than the whole, so that the part does not count.
WITH parts AS (
  SELECT
    g.day,
    unnest([
      { part: 'cached_tokens', rows: g.rows_large_cached }, { part: 'reasoning_tokens', rows: g.rows_large_reasoning }
    ], recursive := true)
  FROM groups AS g
  WHERE g.has_tokens AND g.rows_large_cached + g.rows_large_reasoning > 0
)
SELECT
  format(
    'Day {}: {} are more than the count that contains them in {} rows, and are left out there', p.day, p.part, sum(p.rows)
  ) AS message
FROM parts AS p
GROUP BY p.day, p.part
HAVING sum(p.rows) > 0
ORDER BY p.day, p.part;

-- name: refused-days
-- The days that keep their figures, with the reason: tokens of one kind that do not fit into BIGINT, the type of a day's counts
-- in every file, or more than 1 % of rejected rows (CONTRACT 7), named by the three most common violations.
WITH violations AS (
  SELECT
    d.day, d.rows_rejected, d.rows_read,
    format(
      '  {}: {} row{}: {}; first at row {}: {}', r.file, sum(r.rows), CASE WHEN sum(r.rows) = 1 THEN '' ELSE 's' END, r.reason,
      min(r.row), left(regexp_replace(min_by(r.payload, r.row), '\s+$', ''), 200)
    ) AS line,
    row_number() OVER (PARTITION BY d.day ORDER BY sum(r.rows) DESC, r.file, r.reason) AS place
  FROM rejected AS r
  JOIN day_totals AS d ON d.day = r.day AND d.rows_rejected * 100 > d.rows_read
  GROUP BY d.day, d.rows_rejected, d.rows_read, r.file, r.reason
  QUALIFY place <= 3
),
-- Its app is joined afterwards: most nights have no such day, and no name is read.
too_large AS (
  SELECT
    c.day, greatest(sum(c.prompt_tokens), sum(c.completion_tokens)) AS tokens,
    max_by(c.app_id, greatest(c.prompt_tokens, c.completion_tokens)) AS app_id
  FROM counted AS c
  WHERE c.app_id IS NOT NULL AND c.day IN (SELECT d.day FROM day_totals AS d WHERE d.wide)
  GROUP BY c.day
)
SELECT
  CAST(v.day AS VARCHAR) AS day,
  format(
    'Day {}: {} of {} rows are rejected, more than 1 %. Correct or remove the files; npm run nightly -- quarantine {} lists the '
      || 'rejected rows',
    v.day, v.rows_rejected, v.rows_read, v.day
  ) || string_agg(chr(10) || v.line, '' ORDER BY v.place) AS reason
FROM violations AS v
GROUP BY v.day, v.rows_rejected, v.rows_read
UNION ALL
SELECT
  CAST(t.day AS VARCHAR),
  format(
    'Day {}: all apps together have {} tokens of one kind, more than 9223372036854775807, the most that a day may have; app {} '
      || 'has the most. Correct or remove the files',
    t.day, t.tokens, concat(t.app_id, ' (' || n.app_name || ')')
  )
FROM too_large AS t
LEFT JOIN app_names AS n ON n.app_id = t.app_id
ORDER BY day, reason;

-- name: forget-rejected
-- Removes the rejected rows of the days in the list `days`.
DELETE FROM quarantine WHERE list_contains(getvariable('days'), day);

-- name: quarantine
-- Stores the rejected rows of the days being counted.
INSERT INTO quarantine BY NAME
SELECT r.day, r.file, r.row, r.reason, r.payload, r.rows
FROM rejected AS r;

-- name: remove-days
-- Removes the figures of the days in the list `days`. The bounds let the reader skip the history around them.
DELETE FROM usage_daily
WHERE day BETWEEN list_min(getvariable('days')) AND list_max(getvariable('days'))
  AND list_contains(getvariable('days'), day);
DELETE FROM usage_by_model
WHERE day BETWEEN list_min(getvariable('days')) AND list_max(getvariable('days'))
  AND list_contains(getvariable('days'), day);
DELETE FROM usage_by_provider WHERE list_contains(getvariable('days'), day);
DELETE FROM days WHERE list_contains(getvariable('days'), day);

-- name: store-days
-- Stores the counts of the days in the list `days`. The list of the others is empty as a rule, and searching that for each row
-- takes less time.
SET VARIABLE refused = (
  SELECT list_filter(list(d.day), lambda day: NOT list_contains(getvariable('days'), day)) FROM day_totals AS d
);

CREATE OR REPLACE TEMP VIEW net AS
SELECT c.*
FROM counted AS c
WHERE c.app_id IS NOT NULL AND NOT list_contains(getvariable('refused'), c.day);

-- Without models each app has one count per day, and adding it up would take longer than everything else here.
SET VARIABLE is_by_model = EXISTS (FROM model_texts AS t WHERE t.model IS NOT NULL);

-- In no order: the snapshot sorts its history once, which costs less than a sort of each day.
INSERT INTO usage_daily
SELECT n.day, n.app_id, n.requests, n.prompt_tokens, n.completion_tokens
FROM net AS n
WHERE NOT getvariable('is_by_model')
UNION ALL
SELECT
  n.day, n.app_id, CAST(sum(n.requests) AS BIGINT), CAST(sum(n.prompt_tokens) AS BIGINT),
  CAST(sum(n.completion_tokens) AS BIGINT)
FROM net AS n
WHERE getvariable('is_by_model')
GROUP BY n.day, n.app_id;

INSERT INTO models
SELECT hash(t.model) AS key, min(t.model)
FROM model_texts AS t
WHERE t.model IS NOT NULL AND hash(t.model) NOT IN (SELECT m.key FROM models AS m)
GROUP BY key;

INSERT INTO usage_by_model BY NAME
SELECT
  n.day, n.app_id, n.model_key, n.requests, n.prompt_tokens, n.completion_tokens, n.reasoning_tokens, n.cached_tokens
FROM net AS n
WHERE n.model_key <> hash(CAST(NULL AS VARCHAR)) OR n.reasoning_tokens > 0 OR n.cached_tokens > 0;

INSERT INTO usage_by_provider BY NAME
SELECT p.*
FROM provider_counts AS p
WHERE list_contains(getvariable('days'), p.day) AND (p.provider IS NOT NULL OR p.rows_failed > 0);

INSERT INTO days BY NAME
SELECT d.* EXCLUDE (wide), f.fingerprint, getvariable('counted_at') AS counted_at
FROM day_totals AS d
JOIN (SELECT unnest(getvariable('days')) AS day, unnest(getvariable('fingerprints')) AS fingerprint) AS f
  ON f.day = d.day;

-- name: report
-- Totals of the days between the floor and the last completed day, for the run's report, with rejected rows by reason. Numbers
-- that may exceed 2^53 are text; DOUBLE arrives as a number.
WITH reasons AS (
  SELECT q.reason, CAST(sum(q.rows) AS DOUBLE) AS rows
  FROM quarantine AS q
  WHERE q.day <= getvariable('last_day')
  GROUP BY q.reason
),
providers AS (
  SELECT
    p.provider,
    CAST(sum(p.requests) AS DOUBLE) AS requests,
    CAST(sum(p.requests_without_tokens) AS DOUBLE) AS requests_without_tokens,
    CAST(sum(p.rows_failed) AS DOUBLE) AS rows_failed
  FROM usage_by_provider AS p
  WHERE p.day <= getvariable('last_day')
  GROUP BY p.provider
)
SELECT
  CAST(count(*) AS DOUBLE) AS days,
  CAST(coalesce(sum(d.rows_rejected), 0) AS DOUBLE) AS rows_rejected,
  CAST(coalesce(sum(d.rows_duplicate), 0) AS DOUBLE) AS rows_duplicate,
  CAST(coalesce(sum(d.rows_conflicting), 0) AS DOUBLE) AS rows_conflicting,
  CAST(coalesce(sum(d.rows_without_tokens), 0) AS DOUBLE) AS rows_without_tokens,
  coalesce((SELECT sum(p.rows_failed) FROM providers AS p), 0) AS rows_failed_without_tokens,
  CAST(coalesce(sum(d.tokens_rejected), 0) AS VARCHAR) AS tokens_rejected,
  CAST(coalesce(sum(d.tokens_duplicate), 0) AS VARCHAR) AS tokens_duplicate,
  coalesce((SELECT list(r ORDER BY r.rows DESC, r.reason) FROM reasons AS r), []) AS reject_reasons,
  {
    rows_read: CAST(coalesce(sum(d.rows_read), 0) AS DOUBLE),
    tokens_read: CAST(coalesce(sum(d.tokens_read), 0) AS VARCHAR),
    providers: coalesce(
      (
        SELECT list(p ORDER BY p.requests_without_tokens DESC, p.provider)
        FROM (SELECT * EXCLUDE (rows_failed) FROM providers WHERE provider IS NOT NULL) AS p
      ),
      []
    )
  } AS not_published
FROM days AS d
WHERE d.day <= getvariable('last_day');
