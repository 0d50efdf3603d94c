-- The queries of the stage resolve and of `npm run apps`: the registry, and the apps that usage names.

-- name: registry
-- Of the apps with the same name: the only canonical one, else the only one; NULL if the name is ambiguous.
CREATE OR REPLACE TEMP MACRO app_meant(app_id, alias_of) AS CASE
  WHEN count(*) FILTER (alias_of IS NULL) = 1 THEN min(app_id) FILTER (alias_of IS NULL)
  WHEN count(*) = 1 THEN min(app_id)
END;

-- The rows with what they state about their app.
CREATE OR REPLACE TEMP VIEW named_rows AS
SELECT
  s.*,
  id_from_text(s.app_id) AS given_id,
  n.app_id AS named_id,
  n.app_name AS own_name,
  coalesce(n.identity, s.referer) AS identity
FROM staged AS s
LEFT JOIN named_apps AS n ON n.text = s.app;

-- The apps that an address or a name means, in this order: the one with this address or name in a row with an id, the one with
-- this app_name among ids that do not follow from names. Any other has the id that follows from it.
CREATE OR REPLACE TEMP TABLE known_apps AS
WITH owners AS (
  SELECT o.identity, min(o.given_id) AS app_id
  FROM named_rows AS o
  WHERE o.identity IS NOT NULL AND o.given_id IS NOT NULL
  GROUP BY o.identity
),
newest AS (
  SELECT n.given_id, n.app_name, nullif(trim(n.alias_of), '') AS alias_text
  FROM named_rows AS n
  WHERE n.given_id < getvariable('first_app_id')
  QUALIFY row_number() OVER (
    PARTITION BY n.given_id ORDER BY utc_from_text(n.updated_at) DESC NULLS LAST, n.file DESC, n.row DESC
  ) = 1
)
FROM owners
UNION ALL
SELECT
  CASE WHEN is_simple_name(n.app_name) THEN 'local:' || lower(n.app_name) ELSE t.identity END AS meant,
  app_meant(n.given_id, n.alias_text) AS app_id
FROM newest AS n
LEFT JOIN named_apps AS t ON t.text = n.app_name
GROUP BY meant
HAVING starts_with(meant, 'local:') AND meant NOT IN (SELECT o.identity FROM owners AS o);

-- Registry rows, decoded, with the winning row of each app marked. A row that an operator wrote outranks every row that was
-- registered from usage, whatever the clocks say; then the newest updated_at wins, the later file name, the later row. Tags
-- are a JSON list or separated by `|`.
CREATE OR REPLACE TEMP TABLE registry_rows AS
WITH decoded AS (
  SELECT
    s.file,
    s.row,
    s.fault,
    s.identity,
    CASE WHEN s.app_id IS NULL THEN coalesce(k.app_id, s.named_id) ELSE s.given_id END AS app_id,
    -- A name is one line, as those of cleanName; a byte order mark is no part of it, and some readers drop it.
    CASE
      WHEN s.app_id IS NULL AND s.app_name IS NULL THEN s.own_name
      -- Zero widths, direction overrides, marks and fillers alone would be a blank name.
      WHEN regexp_matches(s.app_name, '[^\p{Cc}\p{Cf}\p{Z}\p{Mn}\x{115F}\x{1160}\x{2065}\x{3164}\x{FFA0}\x{FFF0}-\x{FFF8}\x{E0000}-\x{E0FFF}]')
        THEN trim(regexp_replace(s.app_name, '[\p{Cc}\p{Zl}\p{Zp}]+', ' ', 'g'), ' ' || chr(65279))
    END AS app_name,
    trim(s.visibility) AS visibility,
    CASE
      WHEN s.subcategories LIKE '[%' THEN TRY_CAST(s.subcategories AS JSON)::VARCHAR[]
      ELSE string_split(coalesce(s.subcategories, ''), '|')
    END AS tags,
    nullif(trim(s.alias_of), '') AS alias_text,
    coalesce(id_from_text(s.alias_of), a.app_id, m.app_id) AS alias_of,
    m.app_id IS NOT NULL AS is_alias_named,
    utc_from_text(s.updated_at) AS updated_at,
    utc_from_text(s.registered_at) AS registered_at,
    s.account_id
  FROM named_rows AS s
  LEFT JOIN known_apps AS k ON k.identity = s.identity
  LEFT JOIN named_apps AS m ON m.text = s.alias_of AND id_from_text(s.alias_of) IS NULL
  LEFT JOIN known_apps AS a ON a.identity = m.identity
)
SELECT
  d.* EXCLUDE (tags),
  list_sort(list_distinct(list_filter(list_transform(d.tags, lambda t: trim(t)), lambda t: t <> ''))) AS subcategories,
  row_number() OVER (
    PARTITION BY d.app_id
    ORDER BY d.registered_at IS NULL DESC, d.updated_at DESC NULLS LAST, d.file DESC, d.row DESC
  ) = 1 AS wins
FROM decoded AS d;

DELETE FROM registry;
INSERT INTO registry
SELECT r.app_id, r.app_name, r.visibility, r.subcategories, r.alias_of, r.updated_at, r.file, r.row
FROM registry_rows AS r
WHERE r.wins AND r.app_id IS NOT NULL AND r.updated_at IS NOT NULL AND r.visibility IS NOT NULL
  AND r.subcategories IS NOT NULL;

-- name: violations
-- Registry rows that break their type or range: winning rows, and rows that no newer row can replace. An old wrong row is
-- corrected by appending a better one. A violation fails the run, since an older row could publish an app that was just
-- hidden.
WITH validated AS (
  SELECT
    r.file,
    r.row,
    CASE
      WHEN r.fault IS NOT NULL THEN r.fault
      WHEN r.app_id IS NULL THEN 'app_id is not an integer'
      WHEN r.app_id = $unattributed
        THEN 'app_id ' || r.app_id || ' stands for requests that name no app: remove the row'
      WHEN r.updated_at IS NULL THEN 'updated_at is not a UTC timestamp such as 2026-01-05T10:00:00Z'
      WHEN NOT r.wins THEN NULL
      WHEN coalesce(r.visibility NOT IN ('public', 'hidden', 'private'), true)
        THEN 'visibility "' || coalesce(r.visibility, '') || '" is none of public, hidden, private'
      WHEN r.alias_text IS NOT NULL AND r.alias_of IS NULL
        THEN 'alias_of "' || r.alias_text || '" is neither an integer nor the name or address of an app'
      WHEN r.is_alias_named AND r.alias_of NOT IN (SELECT a.app_id FROM registry AS a)
        THEN 'alias_of "' || r.alias_text || '" names no app of the registry'
      WHEN r.app_name IS NULL AND r.alias_of IS NULL THEN 'app_name is empty, or holds nothing that can be seen'
      WHEN text_violation(r.app_name) IS NOT NULL THEN 'app_name is not readable text in UTF-8'
      WHEN r.subcategories IS NULL THEN 'subcategories is not a list'
      WHEN NOT list_has_all(CAST($subcategories AS VARCHAR[]), r.subcategories)
        THEN 'unknown subcategories: ' || array_to_string(
          list_filter(r.subcategories, lambda t: NOT list_contains(CAST($subcategories AS VARCHAR[]), t)), ', '
        )
    END AS reason
  FROM registry_rows AS r
)
SELECT v.file, CAST(v.row AS INTEGER) AS row, v.reason
FROM validated AS v
WHERE v.reason IS NOT NULL
ORDER BY v.file, v.row;

-- name: aliases
-- Walks from the canonical apps to their aliases, to the aliases of these, and so on. Every app is visited once, whatever the
-- length of its chain; an alias that leads nowhere is never visited.
DELETE FROM resolved;
INSERT INTO resolved
WITH RECURSIVE met AS (
  SELECT r.app_id, r.app_id AS canonical_id, r.visibility = 'public' AS published
  FROM registry AS r
  WHERE r.alias_of IS NULL
  UNION ALL
  SELECT r.app_id, m.canonical_id, m.published
  FROM met AS m
  JOIN registry AS r ON r.alias_of = m.app_id
)
SELECT m.app_id, m.canonical_id, m.published
FROM met AS m;

-- name: stranded
-- The aliases that lead nowhere, and whether their target is registered.
SELECT r.app_id, r.alias_of, EXISTS (FROM registry AS t WHERE t.app_id = r.alias_of) AS is_known
FROM registry AS r
ANTI JOIN resolved AS d ON d.app_id = r.app_id
ORDER BY r.app_id;

-- name: name-texts
-- Texts by which registry rows name their app, and the target of an alias; and the names of apps with an id of their own, but
-- for the simple ones: there may be a million.
SELECT '=' || s.app AS app
FROM staged AS s
WHERE s.app IS NOT NULL
UNION
SELECT '=' || s.app_name
FROM staged AS s
WHERE NOT is_simple_name(s.app_name) AND id_from_text(s.app_id) < getvariable('first_app_id')
UNION
SELECT '=' || s.alias_of
FROM staged AS s
WHERE s.alias_of IS NOT NULL AND id_from_text(s.alias_of) IS NULL
ORDER BY 1;

-- name: name-aliases
-- Usage of an app name or address that the registry has under another id counts for that app.
INSERT INTO registry
SELECT a.app_id, NULL, 'hidden', [], k.app_id, TIMESTAMP '1970-01-01', 'app_names', 0
FROM app_names AS a
JOIN known_apps AS k ON k.identity = a.identity
WHERE k.app_id <> a.app_id AND a.app_id NOT IN (SELECT r.app_id FROM registry AS r);

-- name: new-names
-- Apps that usage names and the registry lacks, in the order in which they were named. An account may name $limit new apps
-- a day; rows without an account are the operator's own and have no limit.
WITH registered AS (
  SELECT r.account_id, CAST(r.registered_at AS DATE) AS day, count(DISTINCT r.app_id) AS apps
  FROM registry_rows AS r
  WHERE r.account_id IS NOT NULL
  GROUP BY ALL
),
named AS (
  SELECT
    a.*,
    CAST(a.named_at AS DATE) AS day,
    row_number() OVER (
      PARTITION BY a.account_id, CAST(a.named_at AS DATE) ORDER BY a.named_at, a.app_id
    ) AS place
  FROM app_names AS a
  SEMI JOIN usage_daily AS u ON u.app_id = a.app_id
  ANTI JOIN registry AS r ON r.app_id = a.app_id
  WHERE a.named_at IS NOT NULL
)
SELECT
  CAST(n.app_id AS VARCHAR) AS app_id,
  n.identity,
  n.app_name,
  n.title,
  list_transform(
    CASE
      WHEN n.categories LIKE '[%' THEN TRY_CAST(n.categories AS JSON)::VARCHAR[]
      ELSE regexp_split_to_array(coalesce(n.categories, ''), '[,|]')
    END,
    lambda tag: lower(trim(tag))
  ) AS categories,
  strftime(n.named_at, '%Y-%m-%dT%H:%M:%S.%gZ') AS named_at,
  CAST(n.day AS VARCHAR) AS day,
  n.account_id,
  n.account_id IS NOT NULL AND n.place + coalesce(g.apps, 0) > $limit AS is_over_limit
FROM named AS n
LEFT JOIN registered AS g ON g.account_id = n.account_id AND g.day = n.day
ORDER BY n.named_at, n.app_id;

-- name: decline-names
-- Apps over their account's limit can be named anew on a later day.
UPDATE app_names SET named_at = NULL WHERE list_contains($ids, CAST(app_id AS VARCHAR));

-- name: usage
-- All usage per app, registered or not: the only scan of the whole history in this stage, also used by the checks.
CREATE OR REPLACE TEMP TABLE app_usage AS
SELECT
  u.app_id,
  sum(u.requests) AS requests,
  sum(u.prompt_tokens) + sum(u.completion_tokens) AS tokens
FROM warehouse.usage_daily AS u
WHERE u.day <= getvariable('last_day')
GROUP BY u.app_id;

-- name: totals
-- Totals of the registry and of excluded usage, for the run's report: token totals as text, counts as numbers. The unregistered
-- apps with the most tokens are private.
WITH used AS (
  SELECT
    u.*,
    r.published,
    u.app_id = $unattributed AS is_unattributed,
    r.app_id IS NULL AND NOT is_unattributed AS is_unregistered
  FROM app_usage AS u
  LEFT JOIN resolved AS r ON r.app_id = u.app_id
),
unregistered AS (
  SELECT u.app_id, u.requests, u.tokens
  FROM used AS u
  WHERE u.is_unregistered
  ORDER BY u.tokens DESC, u.app_id
  LIMIT 100
)
SELECT
  CAST((SELECT count(*) FROM registry) AS DOUBLE) AS apps_registered,
  CAST((SELECT count(r.alias_of) FROM registry AS r) AS DOUBLE) AS aliases,
  CAST((SELECT count(*) FROM resolved AS r WHERE r.published AND r.app_id = r.canonical_id) AS DOUBLE) AS apps_public,
  CAST(count(*) FILTER (u.is_unregistered) AS DOUBLE) AS apps_unregistered,
  CAST(coalesce(sum(u.tokens) FILTER (u.published), 0) AS VARCHAR) AS tokens_published,
  (
    SELECT coalesce(list(r.file || ', row ' || r.row || ': app ' || r.app_id ORDER BY r.file, r.row), [])
    FROM registry AS r
    WHERE r.updated_at > getvariable('as_of') AT TIME ZONE 'UTC'
  ) AS dated_ahead,
  {
    tokens_hidden: CAST(coalesce(sum(u.tokens) FILTER (NOT u.published), 0) AS VARCHAR),
    tokens_unregistered: CAST(coalesce(sum(u.tokens) FILTER (u.is_unregistered), 0) AS VARCHAR),
    requests_unregistered: CAST(coalesce(sum(u.requests) FILTER (u.is_unregistered), 0) AS DOUBLE),
    unregistered: (SELECT coalesce(list(n ORDER BY n.tokens DESC, n.app_id), []) FROM unregistered AS n),
    requests_unattributed: CAST(coalesce(sum(u.requests) FILTER (u.is_unattributed), 0) AS DOUBLE),
    tokens_unattributed: CAST(coalesce(sum(u.tokens) FILTER (u.is_unattributed), 0) AS VARCHAR)
  } AS not_published
FROM used AS u;

-- name: unranked-days
-- Days counted by this run with more than 5 % of their tokens on no app or an unregistered one; the worst first.
-- The two counts are added up apart: each fits into 64 bits, which their sum may not.
WITH totals AS (
  SELECT
    u.day,
    coalesce(sum(u.prompt_tokens) FILTER (r.app_id IS NULL), 0)
      + coalesce(sum(u.completion_tokens) FILTER (r.app_id IS NULL), 0) AS unranked,
    sum(u.prompt_tokens) + sum(u.completion_tokens) AS tokens
  FROM usage_daily AS u
  LEFT JOIN registry AS r ON r.app_id = u.app_id
  WHERE u.day IN (SELECT d.day FROM days AS d WHERE d.counted_at >= getvariable('as_of'))
    AND u.day <= getvariable('last_day')
  GROUP BY u.day
)
SELECT CAST(t.day AS VARCHAR) AS day, CAST(t.unranked AS VARCHAR) AS unranked, CAST(t.tokens AS VARCHAR) AS tokens
FROM totals AS t
WHERE t.unranked * 20 > t.tokens
ORDER BY t.unranked / t.tokens DESC, t.day;
