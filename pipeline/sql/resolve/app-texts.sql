-- The texts by which registry rows name their apps.
SELECT DISTINCT s.app
FROM staged AS s
WHERE s.app IS NOT NULL
ORDER BY s.app;
