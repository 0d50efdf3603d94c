-- Apps that rows name instead of giving an id.

-- name: texts
-- Texts by which registry rows name their app, and the target of an alias.
SELECT s.app
FROM staged AS s
WHERE s.app IS NOT NULL
UNION
SELECT s.alias_of
FROM staged AS s
WHERE s.alias_of IS NOT NULL AND id_from_text(s.alias_of) IS NULL
ORDER BY 1;

-- name: aliases
-- Usage of an app name or address that the registry has under another id counts for that app: the one with this address, or
-- the one with this name among apps whose ids do not follow from names.
INSERT INTO registry
WITH owners AS (
  SELECT r.identity, min(r.app_id) AS app_id
  FROM registry_rows AS r
  WHERE r.identity IS NOT NULL AND r.app_id IS NOT NULL
  GROUP BY r.identity
),
names AS (
  SELECT 'local:' || lower(r.app_name) AS identity, app_meant(r.app_id, r.alias_of) AS app_id
  FROM registry AS r
  WHERE r.app_id < getvariable('first_app_id')
  GROUP BY identity
)
SELECT a.app_id, NULL, 'hidden', [], coalesce(o.app_id, n.app_id), TIMESTAMP '1970-01-01', 'app_names', 0
FROM app_names AS a
LEFT JOIN owners AS o ON o.identity = a.identity
LEFT JOIN names AS n ON n.identity = a.identity
WHERE coalesce(o.app_id, n.app_id) <> a.app_id
  AND a.app_id NOT IN (SELECT r.app_id FROM registry AS r);

-- name: new
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

-- name: decline
-- Apps over their account's limit can be named anew on a later day.
UPDATE app_names SET named_at = NULL WHERE list_contains($ids, CAST(app_id AS VARCHAR));
