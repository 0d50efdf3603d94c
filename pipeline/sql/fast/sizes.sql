-- The sizes that limit the number of candidates, and the present number. Apps without a subcategory count under ''.
SELECT
  (SELECT count(*) FROM snapshot.apps) AS apps,
  (SELECT count(DISTINCT u.tag) + 1 FROM (SELECT unnest(a.subcategories) AS tag FROM snapshot.apps AS a) AS u) AS subcategories,
  (SELECT count(*) FROM snapshot.app_daily) AS app_days,
  (SELECT count(*) FROM snapshot.fast.apps) AS candidates;
