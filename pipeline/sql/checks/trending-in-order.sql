-- In a trending list every app grows, and none grew more than the app above; computed without the macro.
WITH listed AS (
  SELECT DISTINCT r.window_days, r.start_date, r.end_date, r.app_id
  FROM snapshot.rankings AS r
  WHERE r.sort = 'trending'
),
growth AS (
  SELECT
    l.window_days,
    l.app_id,
    sum(
      (CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT))
      * CASE WHEN d.day >= l.start_date THEN 3 ELSE -1 END
    ) AS triple_excess
  FROM listed AS l
  JOIN snapshot.app_daily AS d
    ON d.app_id = l.app_id
    AND d.day BETWEEN l.start_date - CAST(3 * (l.end_date - l.start_date + 1) AS INTEGER) AND l.end_date
  GROUP BY l.window_days, l.app_id
),
neighbours AS (
  SELECT
    r.*,
    g.triple_excess,
    lag(g.triple_excess) OVER list AS excess_above,
    lag(r.total_tokens) OVER list AS tokens_above,
    lag(r.app_id) OVER list AS app_above
  FROM snapshot.rankings AS r
  LEFT JOIN growth AS g ON g.window_days = r.window_days AND g.app_id = r.app_id
  WHERE r.sort = 'trending'
  WINDOW list AS (PARTITION BY r.window_days, r.category, r.subcategory ORDER BY r.rank)
)
SELECT n.window_days, n.category, n.subcategory, n.rank, n.app_id, n.triple_excess, n.excess_above
FROM neighbours AS n
WHERE coalesce(n.triple_excess <= 0, true)
  OR (n.triple_excess, n.total_tokens, -CAST(n.app_id AS HUGEINT)) > (n.excess_above, n.tokens_above, -CAST(n.app_above AS HUGEINT))
ORDER BY ALL;
