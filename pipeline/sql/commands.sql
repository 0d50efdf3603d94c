-- The queries of the commands: `npm run apps`, with the statement that stages a decision, then those of `npm run nightly`.

-- name: list
-- The winning row of each app with $text in its id, name or address; only chat requests' rows have addresses.
WITH addresses AS (
  SELECT r.app_id, max_by(s.referer, r.updated_at) AS referer
  FROM registry_rows AS r
  JOIN staged AS s ON s.file = r.file AND s.row = r.row
  WHERE s.referer IS NOT NULL
  GROUP BY r.app_id
)
SELECT
  r.app_id,
  r.app_name,
  r.visibility,
  r.subcategories,
  r.alias_of,
  a.referer,
  strftime(r.updated_at, '%Y-%m-%dT%H:%M:%S.%gZ') AS updated_at
FROM registry_rows AS r
LEFT JOIN addresses AS a ON a.app_id = r.app_id
WHERE r.wins
  AND r.app_id IS NOT NULL
  AND (
    CAST(r.app_id AS VARCHAR) = $text
    OR contains(lower(coalesce(r.app_name, '')), lower($text))
    OR contains(lower(coalesce(a.referer, '')), lower($text))
  )
ORDER BY r.app_id;

-- name: history
-- Every row of an app, oldest first: decisions have an action and a reason, delivered rows have neither.
SELECT
  strftime(r.updated_at, '%Y-%m-%dT%H:%M:%S.%gZ') AS updated_at,
  s.action,
  s.reason,
  r.app_name,
  r.visibility,
  r.subcategories,
  r.alias_of,
  r.file
FROM registry_rows AS r
JOIN staged AS s ON s.file = r.file AND s.row = r.row
WHERE CAST(r.app_id AS VARCHAR) = $id
ORDER BY r.updated_at, r.file, r.row;

-- name: winners
-- The winning registry rows of these apps, valid or not.
SELECT
  CAST(r.app_id AS VARCHAR) AS app_id,
  r.app_name,
  r.visibility,
  coalesce(r.subcategories, []) AS subcategories,
  CAST(r.alias_of AS VARCHAR) AS alias_of,
  -- A row that was registered from usage never outranks a decision.
  CASE WHEN r.registered_at IS NULL THEN CAST(epoch_ms(r.updated_at) AS VARCHAR) END AS updated_ms
FROM registry_rows AS r
WHERE r.wins AND list_contains(CAST($ids AS VARCHAR[]), CAST(r.app_id AS VARCHAR))
ORDER BY r.app_id;

-- name: propose
-- Stages a decision before its file exists.
INSERT INTO staged (
  file, row, app_id, app_name, visibility, subcategories, alias_of, updated_at, action, reason
)
VALUES (
  $file, $row, $app_id, $app_name, $visibility, $subcategories, $alias_of, $updated_at, $action, $reason
);

-- name: quarantine
-- The rejected rows of one day, or of all days, unchanged.
SELECT CAST(q.day AS VARCHAR) AS day, q.file, CAST(q.row AS VARCHAR) AS row, q.rows, q.reason, q.payload
FROM quarantine AS q
WHERE q.day = coalesce(CAST($day AS DATE), q.day)
ORDER BY q.day DESC, q.file, q.row;

-- name: status
-- Summary of the current snapshot.
SELECT
  strftime(m.as_of AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ') AS as_of,
  CAST(m.first_day AS VARCHAR) AS first_day,
  CAST(m.data_through AS VARCHAR) AS data_through,
  (SELECT count(*) FROM current.apps) AS apps,
  (SELECT count(*) FROM current.app_daily) AS app_days,
  coalesce(list(CAST(c.day AS VARCHAR) ORDER BY c.day) FILTER (c.status = 'missing'), []) AS days_missing,
  coalesce(list(CAST(c.day AS VARCHAR) ORDER BY c.day) FILTER (c.status = 'partial'), []) AS days_partial,
  coalesce(list(CAST(c.day AS VARCHAR) ORDER BY c.day) FILTER (c.status = 'restated'), []) AS days_restated
FROM current.meta AS m
LEFT JOIN current.coverage AS c ON c.day >= m.first_day
GROUP BY ALL;
