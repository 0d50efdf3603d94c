-- An app that leads any of its subcategories in any block is a candidate.
INSERT INTO snapshot.fast.apps
SELECT a.*
FROM snapshot.apps AS a
SEMI JOIN (SELECT unnest(list_concat(l.by_total, l.by_peak)) AS app_id FROM leaders AS l) AS c ON c.app_id = a.app_id
ORDER BY a.app_id;

INSERT INTO snapshot.fast.upper_bounds
SELECT l.first_day, l.last_day, l.subcategory, l.next_total, l.next_peak
FROM leaders AS l
WHERE l.next_total IS NOT NULL
ORDER BY ALL;

DROP TABLE leaders;
DROP TABLE app_subcategories;
