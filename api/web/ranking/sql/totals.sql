-- How many apps the whole ranking has, and all their tokens.
SELECT
  count(*) AS apps,
  CAST(coalesce(sum(total_tokens), 0) AS VARCHAR) AS tokens
FROM popular($start, $end, category := $category, subcategory := $subcategory);
