-- One list of the table rankings, made with the macro that answers everybody else.
INSERT INTO snapshot.rankings
SELECT
  CAST($window_days AS INTEGER), CAST($start_date AS DATE), CAST($end_date AS DATE), 'popular',
  $category, $subcategory, r.rank, r.app_id, r.app_name, r.total_requests, r.total_tokens
FROM popular($start_date, $end_date, category := $category, subcategory := $subcategory) AS r
WHERE r.rank <= 200
ORDER BY r.rank;
