-- The first 200 apps of each filter. A filter removes apps and keeps the order, so it selects from `whole`.
INSERT INTO snapshot.rankings
WITH firsts AS (
  SELECT m.filter, unnest(min(w.rank, 200)) AS place
  FROM whole AS w
  JOIN members AS m ON m.app_id = w.app_id
  GROUP BY m.filter
)
SELECT
  CAST($window_days AS INTEGER), CAST($start_date AS DATE), CAST($end_date AS DATE), $sort,
  f.category, f.subcategory,
  row_number() OVER (PARTITION BY f.number ORDER BY p.place) AS rank,
  w.app_id, a.app_name, w.total_requests, w.total_tokens
FROM firsts AS p
JOIN filters AS f ON f.number = p.filter
JOIN whole AS w ON w.rank = p.place
JOIN snapshot.apps AS a ON a.app_id = w.app_id
ORDER BY f.number, rank;
