-- Requests published + hidden + unregistered = requests counted, to the last one.
WITH counted AS (
  SELECT
    coalesce(sum(u.requests), 0) AS requests,
    coalesce(sum(u.requests) FILTER (g.app_id IS NULL), 0) AS unregistered,
    coalesce(sum(u.requests) FILTER (NOT g.published), 0) AS hidden
  FROM app_usage AS u
  LEFT JOIN warehouse.resolved AS g ON g.app_id = u.app_id
),
published AS (
  SELECT coalesce(sum(d.requests), 0) AS requests
  FROM day_totals AS d
)
SELECT c.requests AS counted, p.requests AS published, c.hidden, c.unregistered
FROM counted AS c, published AS p
WHERE c.requests <> p.requests + c.hidden + c.unregistered;
