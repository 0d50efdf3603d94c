-- An app outside has at most the sum of the bounds of the blocks that the window touches, in each of its tags.
CREATE MACRO snapshot.fast.outside(start_date, end_date, wanted_category, wanted_subcategory) AS TABLE
WITH bounds AS (
  SELECT
    o.tag,
    sum(least(
      CAST(o.most_in_all AS HUGEINT),
      CAST(o.most_on_a_day AS HUGEINT) * (
        least(CAST(end_date AS DATE), o.last_day) - greatest(CAST(start_date AS DATE), o.first_day) + 1
      )
    )) AS tokens
  FROM fast.outsiders AS o
  WHERE o.first_day <= CAST(end_date AS DATE)
    AND o.last_day >= CAST(start_date AS DATE)
    AND (wanted_subcategory IS NULL OR o.tag = wanted_subcategory)
    AND (
      wanted_category IS NULL
      OR o.tag IN (SELECT c.subcategory FROM categories AS c WHERE c.category = wanted_category)
    )
  GROUP BY o.tag
)
SELECT max(b.tokens) AS tokens FROM bounds AS b;
COMMENT ON MACRO TABLE snapshot.fast.outside IS 'The tokens that an app which is no head may have inside the window, at most; NULL when there is no such app.';
