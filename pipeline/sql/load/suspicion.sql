-- May request_ids repeat? Distinct hashes are far cheaper to count than distinct texts, and two texts with the
-- same hash can only raise a false alarm.
SELECT count(i.request_id) > count(DISTINCT hash(i.request_id)) AS suspicious
FROM incoming AS i;
