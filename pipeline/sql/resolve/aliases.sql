-- Follows every alias to the end of its chain; a walk that meets itself again is a cycle.
CREATE OR REPLACE TEMP TABLE walks AS
WITH RECURSIVE walk AS (
  SELECT r.app_id, r.alias_of AS next, [r.app_id] AS path, false AS circular
  FROM registry AS r
  WHERE r.alias_of IS NOT NULL
  UNION ALL
  SELECT w.app_id, r.alias_of, list_append(w.path, r.app_id), list_contains(w.path, r.app_id)
  FROM walk AS w
  JOIN registry AS r ON r.app_id = w.next
  WHERE NOT w.circular
)
SELECT
  w.*,
  NOT EXISTS (SELECT 1 FROM registry AS r WHERE r.app_id = w.next) AND w.next IS NOT NULL AS lost
FROM walk AS w;

DELETE FROM resolved;
INSERT INTO resolved
SELECT r.app_id, c.app_id, c.visibility = 'public'
FROM registry AS r
LEFT JOIN walks AS w ON w.app_id = r.app_id AND w.next IS NULL
JOIN registry AS c ON c.app_id = coalesce(list_extract(w.path, -1), r.app_id)
WHERE r.alias_of IS NULL OR w.app_id IS NOT NULL;
