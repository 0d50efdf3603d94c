-- One page of the ranking by growth; columns as in popular.sql.
SELECT
  app_id, app_name, rank, total_requests,
  CAST(total_tokens AS VARCHAR) AS total_tokens,
  CAST(excess_tokens AS VARCHAR) AS measure
FROM trending($start, $end, category := $category, subcategory := $subcategory)
WHERE rank > $offset AND rank <= $offset + $limit
ORDER BY rank
