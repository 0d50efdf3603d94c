-- What decides how many candidates there may be, and how many there are so far. An app without a subcategory has the empty
-- one.
SELECT
  (SELECT count(*) FROM snapshot.apps) AS apps,
  (SELECT count(DISTINCT u.tag) + 1 FROM (SELECT unnest(a.subcategories) AS tag FROM snapshot.apps AS a) AS u) AS subcategories,
  (SELECT count(*) FROM snapshot.app_daily) AS app_days,
  (SELECT count(*) FROM snapshot.fast.apps) AS candidates;
