-- One app more than the first ones is asked for: no other has more than it.
INSERT INTO fast_tops
SELECT
  CAST($first_day AS DATE), CAST($last_day AS DATE), t.tag,
  t.by_total[:$level], t.by_peak[:$level], t.totals[$level + 1], t.peaks[$level + 1]
FROM (
  SELECT
    g.tag,
    max_by(b.app_id, b.total, $level + 1) AS by_total,
    max_by(b.app_id, b.peak, $level + 1) AS by_peak,
    max(b.total, $level + 1) AS totals,
    max(b.peak, $level + 1) AS peaks
  FROM fast_block AS b
  JOIN fast_tags AS g ON g.app_id = b.app_id
  GROUP BY g.tag
) AS t;
