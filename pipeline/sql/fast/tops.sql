-- One app more than the first ones is asked for: no other has more than it.
INSERT INTO fast_tops
SELECT
  CAST($first_day AS DATE), CAST($last_day AS DATE), n.tag,
  t.by_total[:$level], t.by_peak[:$level], total.total, peak.peak
FROM (
  SELECT
    g.tag,
    max_by(b.app_id, b.total, $level + 1) AS by_total,
    max_by(b.app_id, b.peak, $level + 1) AS by_peak
  FROM fast_block AS b
  JOIN fast_tags AS g ON g.app_id = b.app_id
  GROUP BY g.tag
) AS t
JOIN fast_tag_names AS n ON n.number = t.tag
LEFT JOIN fast_block AS total ON total.app_id = t.by_total[$level + 1]
LEFT JOIN fast_block AS peak ON peak.app_id = t.by_peak[$level + 1];
