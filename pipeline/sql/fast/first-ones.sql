-- The apps that are among the first of one of their tags in a block, by all tokens or by the largest day.
INSERT INTO fast_candidates
SELECT DISTINCT b.app_id
FROM fast_block AS b
JOIN fast_tags AS g ON g.app_id = b.app_id
JOIN fast_tops AS t ON t.tag = g.tag AND t.first_day = CAST($first_day AS DATE)
WHERE t.next_total IS NULL OR b.total >= t.least_total OR b.peak >= t.least_peak;
