-- The queries of the stage rank, which builds the new snapshot.

-- name: extent
-- First and last completed day with usage, whether all usage together fits into BIGINT (with room for the upper bounds on it),
-- and the number of days that hold about $rows_at_once app-days together.
SELECT
  CAST(min(d.day) AS VARCHAR) AS first_day,
  CAST(max(d.day) AS VARCHAR) AS data_through,
  coalesce(sum(d.tokens_read), 0) < 9000000000000000000 AS fits_bigint,
  greatest(1, $rows_at_once * count(*) // greatest(1, (SELECT count(*) FROM usage_daily))) AS days_at_once
FROM days AS d
WHERE d.day <= getvariable('last_day') AND d.rows_read > d.rows_rejected;

-- name: fingerprint
-- Text of everything that decides the published data. It uses figures instead of files: neither a second delivery nor a day
-- whose files hold no rows makes a new snapshot.
WITH usage AS (
  SELECT
    string_agg(concat_ws(' ', d.day, d.content_hash, d.rows_rejected > 0), ',' ORDER BY d.day) AS content
  FROM days AS d
  WHERE d.day <= getvariable('last_day') AND d.rows_read > 0
),
apps AS (
  SELECT
    concat_ws(
      '-', count(*),
      sum(hash(r.app_id, r.app_name, r.visibility, r.subcategories, coalesce(r.alias_of, r.app_id)))
    ) AS content
  FROM registry AS r
)
SELECT sha256(concat_ws('|', getvariable('rules'), usage.content, apps.content)) AS input_fingerprint
FROM usage, apps;

-- name: newest
-- The fingerprint of the newest snapshot, the number of days that it restated, and whether its totals fit into BIGINT.
SELECT
  m.input_fingerprint,
  (SELECT count(*) FROM newest.restatements AS r WHERE r.as_of = m.as_of AND r.cause = 'figures') AS days_restated,
  greatest(
    (SELECT max(c.total_tokens) FROM newest.coverage AS c),
    (SELECT max(greatest(r.tokens_before, r.tokens_after)) FROM newest.restatements AS r)
  ) < 9000000000000000000 AS fits_bigint
FROM newest.meta AS m;

-- name: apps
-- The public apps. Aliases, hidden and private apps do not enter the snapshot.
INSERT INTO snapshot.apps
SELECT r.app_id, r.app_name, r.subcategories
FROM warehouse.registry AS r
JOIN warehouse.resolved AS c ON c.app_id = r.app_id
WHERE c.published AND c.canonical_id = c.app_id
ORDER BY r.app_id;

-- name: first-changed
-- The first day whose rows in app_daily may differ from those of the snapshot $newest: other counts, or an app that counts
-- otherwise. NULL if there is none.
WITH changed AS (
  SELECT day
  FROM (FROM days AS d WHERE d.day <= getvariable('last_day')) AS d
  FULL JOIN (FROM published_counts AS p WHERE p.snapshot = $newest AND p.rules = getvariable('rules')) AS p USING (day)
  WHERE d.content_hash IS DISTINCT FROM p.content_hash
),
moved AS (
  SELECT app_id
  FROM resolved AS r
  FULL JOIN (FROM published_apps AS p WHERE p.snapshot = $newest) AS p USING (app_id)
  WHERE r.canonical_id IS DISTINCT FROM p.canonical_id OR r.published IS DISTINCT FROM p.published
)
SELECT CAST(least(
  (SELECT min(c.day) FROM changed AS c),
  (SELECT min(u.day) FROM usage_daily AS u SEMI JOIN moved AS m ON m.app_id = u.app_id)
) AS VARCHAR) AS first_changed;

-- name: unchanged-days
INSERT INTO snapshot.app_daily
FROM newest.app_daily AS d
WHERE d.day < getvariable('first_changed');

INSERT INTO snapshot.model_daily
FROM newest.model_daily AS m
WHERE m.day < getvariable('first_changed');

-- name: app-daily
-- Usage per day and public app for some days; an alias counts for its canonical app. Sorting the whole history at once would
-- spill to disk; a few days fit into memory. Only apps with aliases are summed: usage_daily already has one row per day of
-- the others, and aggregating those would cost most of the time.
INSERT INTO snapshot.app_daily
WITH merged AS (
  SELECT DISTINCT r.canonical_id
  FROM warehouse.resolved AS r
  WHERE r.app_id <> r.canonical_id
),
single_apps AS (FROM warehouse.resolved AS r ANTI JOIN merged AS m ON m.canonical_id = r.canonical_id),
merged_apps AS (FROM warehouse.resolved AS r SEMI JOIN merged AS m ON m.canonical_id = r.canonical_id)
SELECT u.day, c.canonical_id, u.requests, u.prompt_tokens, u.completion_tokens
FROM warehouse.usage_daily AS u
JOIN single_apps AS c ON c.app_id = u.app_id
WHERE c.published AND u.day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)
UNION ALL
SELECT
  u.day, c.canonical_id, CAST(sum(u.requests) AS BIGINT), CAST(sum(u.prompt_tokens) AS BIGINT),
  CAST(sum(u.completion_tokens) AS BIGINT)
FROM warehouse.usage_daily AS u
JOIN merged_apps AS c ON c.app_id = u.app_id
WHERE c.published AND u.day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)
GROUP BY u.day, c.canonical_id
ORDER BY day, canonical_id;

-- name: day-totals
-- The totals of each day of app_daily, and a hash of its rows: other tables, the checks and the months need them, and a scan of
-- the whole history takes time.
CREATE OR REPLACE TEMP TABLE day_totals AS
SELECT
  d.day,
  count(*) AS rows,
  sum(d.requests) AS requests,
  sum(d.prompt_tokens) AS prompt_tokens,
  sum(d.completion_tokens) AS completion_tokens,
  sum(d.prompt_tokens) + sum(d.completion_tokens) AS tokens,
  bit_xor(hash(*COLUMNS(d.*))) AS content
FROM snapshot.app_daily AS d
GROUP BY d.day;

-- name: restatements
-- Restatements of earlier snapshots stay.
INSERT INTO snapshot.restatements BY NAME SELECT * FROM previous.restatements;

-- Where each app's usage counted in the previous snapshot. If the warehouse was rebuilt, or an earlier version published, it
-- does not know: then the public apps of that snapshot count for themselves, and other apps are unknown.
CREATE OR REPLACE TEMP TABLE earlier_apps AS
SELECT p.app_id, p.canonical_id, p.published
FROM warehouse.published_apps AS p
WHERE p.snapshot = getvariable('previous')
UNION ALL
SELECT
  coalesce(r.app_id, p.app_id),
  coalesce(p.app_id, r.canonical_id),
  p.app_id IS NOT NULL OR r.canonical_id IN (SELECT a.app_id FROM previous.apps AS a)
FROM warehouse.resolved AS r
FULL JOIN previous.apps AS p ON p.app_id = r.app_id
WHERE NOT EXISTS (FROM warehouse.published_apps AS k WHERE k.snapshot = getvariable('previous'));

-- Days whose figures differ from the previous snapshot, and why. One hash per day selects the days to compare row by row.
INSERT INTO snapshot.restatements BY NAME
WITH earlier_days AS (
  SELECT d.day, bit_xor(hash(*COLUMNS(d.*))) AS content
  FROM previous.app_daily AS d
  WHERE d.day >= getvariable('first_changed')
  GROUP BY d.day
),
changed_days AS (
  SELECT day
  FROM earlier_days AS e
  FULL JOIN (FROM day_totals AS t WHERE t.day >= getvariable('first_changed')) AS t USING (day)
  WHERE e.content IS DISTINCT FROM t.content AND day <= (SELECT m.data_through FROM previous.meta AS m)
),
before AS (SELECT d.* FROM previous.app_daily AS d SEMI JOIN changed_days AS s ON s.day = d.day),
after AS (SELECT d.* FROM snapshot.app_daily AS d SEMI JOIN changed_days AS s ON s.day = d.day),
-- Today's figures with the aliases and visibilities of the previous snapshot: what differs from `before` was caused by
-- figures, what differs from `after` by the registry.
recounted AS (
  SELECT
    u.day,
    e.canonical_id AS app_id,
    sum(u.requests) AS requests,
    sum(u.prompt_tokens) AS prompt_tokens,
    sum(u.completion_tokens) AS completion_tokens
  FROM warehouse.usage_daily AS u
  SEMI JOIN changed_days AS s ON s.day = u.day
  JOIN earlier_apps AS e ON e.app_id = u.app_id
  WHERE e.published
  GROUP BY u.day, e.canonical_id
),
moved AS (
  SELECT
    app_id,
    [e.canonical_id, r.canonical_id] AS counted_for,
    CASE
      WHEN e.canonical_id IS NULL THEN 'added'
      WHEN r.canonical_id IS NULL THEN 'removed'
      WHEN e.canonical_id <> r.canonical_id THEN 'alias'
      ELSE 'visibility'
    END AS cause
  FROM earlier_apps AS e
  FULL JOIN warehouse.resolved AS r USING (app_id)
  WHERE e.canonical_id IS DISTINCT FROM r.canonical_id OR e.published IS DISTINCT FROM r.published
),
moves AS (
  SELECT DISTINCT u.day, unnest(m.counted_for) AS app_id, m.cause
  FROM warehouse.usage_daily AS u
  SEMI JOIN changed_days AS s ON s.day = u.day
  JOIN moved AS m ON m.app_id = u.app_id
),
changes AS (
  SELECT coalesce(b.day, r.day) AS day, coalesce(b.app_id, r.app_id) AS app_id, 'figures' AS cause
  FROM before AS b
  FULL JOIN recounted AS r ON r.day = b.day AND r.app_id = b.app_id
  WHERE b.requests IS DISTINCT FROM r.requests
    OR b.prompt_tokens IS DISTINCT FROM r.prompt_tokens
    OR b.completion_tokens IS DISTINCT FROM r.completion_tokens
  UNION ALL
  SELECT m.day, m.app_id, m.cause
  FROM moves AS m
  LEFT JOIN recounted AS r ON r.day = m.day AND r.app_id = m.app_id
  LEFT JOIN after AS a ON a.day = m.day AND a.app_id = m.app_id
  WHERE a.requests IS DISTINCT FROM r.requests
    OR a.prompt_tokens IS DISTINCT FROM r.prompt_tokens
    OR a.completion_tokens IS DISTINCT FROM r.completion_tokens
),
totals AS (
  SELECT
    day,
    sum(b.requests) AS requests_before,
    sum(a.requests) AS requests_after,
    sum(b.prompt_tokens) + sum(b.completion_tokens) AS tokens_before,
    sum(a.prompt_tokens) + sum(a.completion_tokens) AS tokens_after
  FROM before AS b
  FULL JOIN after AS a USING (day, app_id)
  GROUP BY day
)
SELECT
  getvariable('as_of') AS as_of,
  (SELECT m.as_of FROM previous.meta AS m) AS previous_as_of,
  c.day,
  c.cause,
  count(*) AS apps_changed,
  coalesce(any_value(t.requests_before), 0) AS requests_before,
  coalesce(any_value(t.requests_after), 0) AS requests_after,
  coalesce(any_value(t.tokens_before), 0) AS tokens_before,
  coalesce(any_value(t.tokens_after), 0) AS tokens_after
FROM changes AS c
LEFT JOIN totals AS t ON t.day = c.day
GROUP BY c.day, c.cause
ORDER BY c.day, c.cause;

-- name: coverage
-- One row per UTC day from the floor to the last day, so that a missing day differs from one without traffic.
INSERT INTO snapshot.coverage
WITH calendar AS (
  SELECT CAST(unnest(range(getvariable('floor'), CAST($data_through AS DATE) + 1, INTERVAL 1 DAY)) AS DATE) AS day
)
SELECT
  c.day,
  CASE
    WHEN w.day IS NULL THEN 'missing'
    WHEN w.rows_rejected > 0 THEN 'partial'
    WHEN EXISTS (SELECT 1 FROM snapshot.restatements AS r WHERE r.day = c.day AND r.cause = 'figures') THEN 'restated'
    ELSE 'complete'
  END,
  coalesce(t.requests, 0),
  coalesce(t.tokens, 0)
FROM calendar AS c
LEFT JOIN warehouse.days AS w ON w.day = c.day AND w.rows_read > 0
LEFT JOIN day_totals AS t ON t.day = c.day
ORDER BY c.day;

-- name: filters
-- Every filter of the rankings: none, each group, each subcategory.
CREATE OR REPLACE TEMP TABLE filters AS
SELECT
  CAST(row_number() OVER (
    ORDER BY grouping(c.category) DESC, min(c.rowid), grouping(c.subcategory) DESC
  ) AS INTEGER) AS number,
  c.category, c.subcategory
FROM snapshot.categories AS c
GROUP BY GROUPING SETS ((), (c.category), (c.category, c.subcategory));

-- The apps of each filter, as in the macro filtered_apps, of which each filter would read all apps.
CREATE OR REPLACE TEMP TABLE members AS
SELECT f.number AS filter, a.app_id
FROM filters AS f, snapshot.apps AS a
WHERE f.category IS NULL
UNION ALL
SELECT DISTINCT f.number, t.app_id
FROM (SELECT a.app_id, unnest(a.subcategories) AS tag FROM snapshot.apps AS a) AS t
JOIN snapshot.categories AS c ON c.subcategory = t.tag
JOIN filters AS f ON f.category = c.category AND coalesce(f.subcategory = c.subcategory, true);

-- name: lists
-- The first 200 apps of each filter. A filter removes apps and keeps the order, so it selects from `whole`.
INSERT INTO snapshot.rankings
WITH firsts AS (
  SELECT m.filter, unnest(min(w.rank, 200)) AS place
  FROM whole AS w
  JOIN members AS m ON m.app_id = w.app_id
  GROUP BY m.filter
)
SELECT
  CAST($window_days AS INTEGER), CAST($start_date AS DATE), CAST($end_date AS DATE), $sort,
  f.category, f.subcategory,
  row_number() OVER (PARTITION BY f.number ORDER BY p.place) AS rank,
  w.app_id, a.app_name, w.total_requests, w.total_tokens
FROM firsts AS p
JOIN filters AS f ON f.number = p.filter
JOIN whole AS w ON w.rank = p.place
JOIN snapshot.apps AS a ON a.app_id = w.app_id
ORDER BY f.number, rank;
