-- Alias chains that lead nowhere: to an app that is not in the registry, or round in a circle. A circle is told
-- once, from its smallest app_id.
SELECT 'alias_of of app ' || list_extract(w.path, -1) || ' names the unknown app ' || w.next AS fault
FROM walks AS w
WHERE w.lost AND len(w.path) = 1
UNION ALL
SELECT 'aliases go round in a circle: ' || array_to_string(w.path, ' -> ')
FROM walks AS w
WHERE w.circular AND w.app_id = list_extract(w.path, -1) AND w.app_id = list_min(w.path)
ORDER BY 1;
