-- Tokens published + hidden + unregistered + rejected + duplicate = tokens read, to the last digit.
WITH extent AS (
  SELECT m.data_through FROM snapshot.meta AS m
),
read AS (
  SELECT
    coalesce(sum(d.tokens_read), 0) AS tokens,
    coalesce(sum(d.tokens_rejected), 0) AS rejected,
    coalesce(sum(d.tokens_duplicate), 0) AS duplicate
  FROM warehouse.days AS d, extent AS e
  WHERE d.day <= e.data_through
),
unpublished AS (
  SELECT
    coalesce(sum(u.prompt_tokens) FILTER (g.app_id IS NULL) + sum(u.completion_tokens) FILTER (g.app_id IS NULL), 0) AS unregistered,
    coalesce(sum(u.prompt_tokens) FILTER (g.app_id IS NOT NULL) + sum(u.completion_tokens) FILTER (g.app_id IS NOT NULL), 0) AS hidden
  FROM extent AS e, warehouse.usage_daily AS u
  LEFT JOIN warehouse.resolved AS g ON g.app_id = u.app_id
  WHERE u.day <= e.data_through AND coalesce(NOT g.published, true)
),
published AS (
  SELECT coalesce(sum(d.prompt_tokens) + sum(d.completion_tokens), 0) AS tokens
  FROM snapshot.app_daily AS d
)
SELECT r.tokens AS read, p.tokens AS published, u.hidden, u.unregistered, r.rejected, r.duplicate
FROM read AS r, published AS p, unpublished AS u
WHERE r.tokens <> p.tokens + u.hidden + u.unregistered + r.rejected + r.duplicate;
