-- The winning row of each app whose id, name or address fits; an address is in the rows that chat requests made.
WITH addresses AS (
  SELECT r.app_id, max_by(s.referer, r.updated_at) AS referer
  FROM registry_rows AS r
  JOIN staged AS s ON s.file = r.file AND s.row = r.row
  WHERE s.referer IS NOT NULL
  GROUP BY r.app_id
)
SELECT
  CAST(r.app_id AS VARCHAR) AS app_id,
  r.app_name,
  r.visibility,
  r.subcategories,
  CAST(r.alias_of AS VARCHAR) AS alias_of,
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
