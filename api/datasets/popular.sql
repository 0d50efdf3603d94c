-- One page of the ranking by volume. The total leaves as text: it may pass 2^63, and no digit may be lost.
SELECT app_id, app_name, rank, total_requests, CAST(total_tokens AS VARCHAR) AS total_tokens
FROM popular($start, $end, category := $category, subcategory := $subcategory)
WHERE rank > $offset AND rank <= $offset + $limit
ORDER BY rank
