-- In a popular list no app has more tokens than the app above, and ties are in order of app_id.
WITH neighbours AS (
  SELECT
    r.*,
    lag(r.total_tokens) OVER list AS tokens_above,
    lag(r.app_id) OVER list AS app_above
  FROM snapshot.rankings AS r
  WHERE r.sort = 'popular'
  WINDOW list AS (PARTITION BY r.window_days, r.category, r.subcategory ORDER BY r.rank)
)
SELECT n.window_days, n.category, n.subcategory, n.rank, n.app_id, n.total_tokens, n.app_above, n.tokens_above
FROM neighbours AS n
WHERE (n.total_tokens, -CAST(n.app_id AS HUGEINT)) > (n.tokens_above, -CAST(n.app_above AS HUGEINT))
ORDER BY ALL;
