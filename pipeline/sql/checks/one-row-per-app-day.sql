-- An app has at most one row per day, and the rows are sorted by day and app, so that readers can skip days.
-- In this order duplicates are neighbours; grouping the whole history would cost far more than this one pass.
WITH neighbours AS (
  SELECT d.day, d.app_id, lag(d.day) OVER () AS day_above, lag(d.app_id) OVER () AS app_above
  FROM snapshot.app_daily AS d
)
SELECT n.day, n.app_id, n.day_above, n.app_above
FROM neighbours AS n
WHERE n.day < n.day_above OR (n.day = n.day_above AND n.app_id <= n.app_above)
ORDER BY ALL;
