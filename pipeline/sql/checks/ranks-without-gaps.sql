-- The ranks of every list are 1 to N, each once.
SELECT r.window_days, r.sort, r.category, r.subcategory, count(*) AS rows, min(r.rank) AS first_rank, max(r.rank) AS last_rank
FROM snapshot.rankings AS r
GROUP BY r.window_days, r.sort, r.category, r.subcategory
HAVING min(r.rank) <> 1 OR max(r.rank) <> count(*) OR count(DISTINCT r.rank) <> count(*)
ORDER BY ALL;
