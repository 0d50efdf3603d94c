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

-- The aliases that lead nowhere: to an unknown app, or in a circle. A circle is reported once, from its smallest app_id: only
-- from there a walk returns without visiting a smaller one.
WITH RECURSIVE stranded AS (
  SELECT r.app_id, r.alias_of
  FROM registry AS r
  ANTI JOIN resolved AS d ON d.app_id = r.app_id
),
ahead AS (
  SELECT s.app_id, s.alias_of AS next
  FROM stranded AS s
  UNION
  SELECT a.app_id, s.alias_of
  FROM ahead AS a
  JOIN stranded AS s ON s.app_id = a.next
  WHERE a.next > a.app_id
),
circle AS (
  SELECT s.app_id AS smallest, [s.app_id] AS path, s.alias_of AS next
  FROM stranded AS s
  SEMI JOIN ahead AS a ON a.app_id = s.app_id AND a.next = s.app_id
  UNION ALL
  SELECT c.smallest, list_append(c.path, c.next), s.alias_of
  FROM circle AS c
  JOIN stranded AS s ON s.app_id = c.next
  WHERE c.next <> c.smallest
)
SELECT 'alias_of of app ' || s.app_id || ' names the unknown app ' || s.alias_of AS violation
FROM stranded AS s
ANTI JOIN registry AS r ON r.app_id = s.alias_of
UNION ALL
SELECT 'aliases go round in a circle: ' || array_to_string(c.path, ' -> ') || ' -> ' || c.smallest
FROM circle AS c
WHERE c.next = c.smallest
ORDER BY 1;
