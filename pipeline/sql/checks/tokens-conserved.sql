-- Tokens published + hidden + unregistered + rejected + duplicate = tokens read, to the last digit.
WITH read AS (
  SELECT
    coalesce(sum(d.tokens_read), 0) AS tokens,
    coalesce(sum(d.tokens_rejected), 0) AS rejected,
    coalesce(sum(d.tokens_duplicate), 0) AS duplicate
  FROM warehouse.days AS d
  WHERE d.day <= (SELECT m.data_through FROM snapshot.meta AS m)
),
unpublished AS (
  SELECT
    coalesce(sum(u.tokens) FILTER (g.app_id IS NULL), 0) AS unregistered,
    coalesce(sum(u.tokens) FILTER (NOT g.published), 0) AS hidden
  FROM app_usage AS u
  LEFT JOIN warehouse.resolved AS g ON g.app_id = u.app_id
),
published AS (
  SELECT coalesce(sum(d.tokens), 0) AS tokens
  FROM day_totals AS d
)
SELECT r.tokens AS read, p.tokens AS published, u.hidden, u.unregistered, r.rejected, r.duplicate
FROM read AS r, published AS p, unpublished AS u
WHERE r.tokens <> p.tokens + u.hidden + u.unregistered + r.rejected + r.duplicate;
