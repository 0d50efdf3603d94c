-- How many apps the whole ranking has, all their tokens, and the first day of the data.
SELECT
  count(*) AS apps,
  CAST(coalesce(sum(total_tokens), 0) AS VARCHAR) AS tokens,
  (SELECT CAST(m.first_day AS VARCHAR) FROM meta AS m) AS first_day
FROM popular($start, $end, category := $category, subcategory := $subcategory);
