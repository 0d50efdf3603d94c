-- Requests published + hidden + unregistered = requests counted, to the last one.
WITH extent AS (
  SELECT m.data_through FROM snapshot.meta AS m
),
counted AS (
  SELECT coalesce(sum(u.requests), 0) AS requests
  FROM warehouse.usage_daily AS u, extent AS e
  WHERE u.day <= e.data_through
),
unpublished AS (
  SELECT
    coalesce(sum(u.requests) FILTER (g.app_id IS NULL), 0) AS unregistered,
    coalesce(sum(u.requests) FILTER (g.app_id IS NOT NULL), 0) AS hidden
  FROM extent AS e, warehouse.usage_daily AS u
  LEFT JOIN warehouse.resolved AS g ON g.app_id = u.app_id
  WHERE u.day <= e.data_through AND coalesce(NOT g.published, true)
),
published AS (
  SELECT coalesce(sum(d.requests), 0) AS requests
  FROM snapshot.app_daily AS d
)
SELECT c.requests AS counted, p.requests AS published, u.hidden, u.unregistered
FROM counted AS c, published AS p, unpublished AS u
WHERE c.requests <> p.requests + u.hidden + u.unregistered;
