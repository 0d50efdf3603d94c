-- The number of apps of the whole ranking, and all their requests or tokens.
SELECT
  count(*) AS apps,
  CAST(coalesce(sum(CASE WHEN $measure = 'requests' THEN total_requests ELSE total_tokens END), 0) AS VARCHAR) AS usage
FROM popular($start, $end, category := $category, subcategory := $subcategory);
