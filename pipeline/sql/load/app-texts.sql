-- The texts by which rows name their apps, those that were seen first before the others.
SELECT i.app
FROM incoming_by_name AS i
WHERE i.app <> ''
GROUP BY i.app
ORDER BY min(i.ts) NULLS LAST, i.app;
