-- May request_ids repeat? Distinct hashes are far cheaper to count than distinct texts, and two texts with the
-- same hash can only raise a false alarm. (A null has a hash too, which must not stand in for a lost one.)
SELECT
  count(i.request_id) > count(DISTINCT hash(i.request_id)) FILTER (i.request_id IS NOT NULL) AS suspicious
FROM incoming AS i;
