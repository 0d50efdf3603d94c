-- Goes from the apps that are no aliases to their aliases, to the aliases of those, and so on: every app is met
-- once, however long its chain is, and an alias that leads nowhere is never met.
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
