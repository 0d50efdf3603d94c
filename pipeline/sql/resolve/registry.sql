-- Whether a text has a visible character: more than control characters, spaces, and characters that Unicode ignores
-- (zero widths, direction overrides, fillers, variation selectors).
CREATE OR REPLACE TEMP MACRO has_visible(t) AS NOT regexp_full_match(
  t,
  '[\p{Cc}\p{Z}\x{AD}\x{34F}\x{61C}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{200B}-\x{200F}\x{202A}-\x{202E}'
    || '\x{2060}-\x{206F}\x{3164}\x{FE00}-\x{FE0F}\x{FEFF}\x{FFA0}\x{FFF0}-\x{FFF8}\x{1BCA0}-\x{1BCA3}'
    || '\x{1D173}-\x{1D17A}\x{E0000}-\x{E0FFF}]*'
);

-- Of the apps with the same name: the only canonical one, else the only one; NULL if the name is ambiguous.
CREATE OR REPLACE TEMP MACRO app_meant(app_id, alias_of) AS CASE
  WHEN count(*) FILTER (alias_of IS NULL) = 1 THEN min(app_id) FILTER (alias_of IS NULL)
  WHEN count(*) = 1 THEN min(app_id)
END;

-- Registry rows, decoded, with the winning row of each app marked. A row that an operator wrote outranks every row that was
-- registered from usage, whatever the clocks say; then the newest updated_at wins, the later file name, the later row. Tags
-- are a JSON list or separated by `|`. For a row with a name instead of an id, the app is, in this order: the one with this
-- address or name in a row with an id, the one with this app_name among ids that do not follow from names, the one whose id
-- follows from the name.
CREATE OR REPLACE TEMP TABLE registry_rows AS
WITH named AS (
  SELECT
    s.*,
    id_from_text(s.app_id) AS given_id,
    n.app_id AS named_id,
    n.app_name AS own_name,
    coalesce(n.identity, s.referer) AS identity
  FROM staged AS s
  LEFT JOIN named_apps AS n ON n.text = s.app
),
owners AS (
  SELECT o.identity, min(o.given_id) AS app_id
  FROM named AS o
  WHERE o.identity IS NOT NULL AND o.given_id IS NOT NULL
  GROUP BY o.identity
),
newest AS (
  SELECT n.given_id, n.app_name, nullif(trim(n.alias_of), '') AS alias_text
  FROM named AS n
  WHERE n.given_id < getvariable('first_app_id')
  QUALIFY row_number() OVER (
    PARTITION BY n.given_id ORDER BY utc_from_text(n.updated_at) DESC NULLS LAST, n.file DESC, n.row DESC
  ) = 1
),
known AS (
  FROM owners
  UNION ALL
  SELECT 'local:' || lower(n.app_name) AS identity, app_meant(n.given_id, n.alias_text) AS app_id
  FROM newest AS n
  WHERE n.app_name IS NOT NULL
  GROUP BY identity
  HAVING identity NOT IN (SELECT o.identity FROM owners AS o)
),
decoded AS (
  SELECT
    s.file,
    s.row,
    s.fault,
    s.identity,
    CASE WHEN s.app_id IS NULL THEN coalesce(k.app_id, s.named_id) ELSE s.given_id END AS app_id,
    -- A byte order mark is not part of a name; some readers drop it.
    CASE
      WHEN s.app_id IS NULL AND s.app_name IS NULL THEN s.own_name
      WHEN has_visible(s.app_name) THEN trim(s.app_name, ' ' || chr(65279))
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
  FROM named AS s
  LEFT JOIN known AS k ON k.identity = s.identity
  LEFT JOIN named_apps AS m ON m.text = s.alias_of AND id_from_text(s.alias_of) IS NULL
  LEFT JOIN known AS a ON a.identity = m.identity
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
