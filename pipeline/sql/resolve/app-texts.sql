-- The texts by which registry rows name their apps, and the apps whose aliases these are.
SELECT s.app
FROM staged AS s
WHERE s.app IS NOT NULL
UNION
SELECT s.alias_of
FROM staged AS s
WHERE s.alias_of IS NOT NULL AND id_from_text(s.alias_of) IS NULL
ORDER BY 1;
