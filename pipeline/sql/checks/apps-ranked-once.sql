-- Each app appears once in a list, even with several tags of a group.
SELECT r.window_days, r.sort, r.category, r.subcategory, r.app_id, count(*) AS times
FROM snapshot.rankings AS r
GROUP BY r.window_days, r.sort, r.category, r.subcategory, r.app_id
HAVING count(*) > 1
ORDER BY ALL;
