-- One page of the ranking by volume, and what it is ordered by. Totals leave as text: they may pass 2^63, and no digit
-- may be lost.
SELECT
  app_id, app_name, rank, total_requests,
  CAST(total_tokens AS VARCHAR) AS total_tokens,
  CAST(total_tokens AS VARCHAR) AS measure
FROM popular($start, $end, category := $category, subcategory := $subcategory)
WHERE rank > $offset AND rank <= $offset + $limit
ORDER BY rank
