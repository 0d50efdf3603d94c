-- For each tag in a block: what the first so many apps have at least, and what the next one has. NULL where there are
-- no more apps than that.
INSERT INTO fast_tops
SELECT
  CAST($first_day AS DATE), CAST($last_day AS DATE), t.tag,
  t.totals[$level], t.peaks[$level], t.totals[$level + 1], t.peaks[$level + 1]
FROM (
  SELECT g.tag, max(b.total, $level + 1) AS totals, max(b.peak, $level + 1) AS peaks
  FROM fast_block AS b
  JOIN fast_tags AS g ON g.app_id = b.app_id
  GROUP BY g.tag
) AS t;
