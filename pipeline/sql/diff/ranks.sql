-- Apps whose rank moved in the 30-day lists of all apps, the best ranks first.
WITH before_ranks AS (
  SELECT r.sort, r.app_id, r.app_name, r.rank
  FROM before.rankings AS r
  WHERE r.window_days = 30 AND r.category IS NULL AND r.subcategory IS NULL
),
after_ranks AS (
  SELECT r.sort, r.app_id, r.app_name, r.rank
  FROM after.rankings AS r
  WHERE r.window_days = 30 AND r.category IS NULL AND r.subcategory IS NULL
)
SELECT
  coalesce(b.sort, a.sort) AS sort,
  CAST(coalesce(b.app_id, a.app_id) AS VARCHAR) AS app_id,
  coalesce(a.app_name, b.app_name) AS app_name,
  b.rank AS rank_before,
  a.rank AS rank_after
FROM before_ranks AS b
FULL JOIN after_ranks AS a ON a.sort = b.sort AND a.app_id = b.app_id
WHERE b.rank IS DISTINCT FROM a.rank
ORDER BY 1, least(coalesce(b.rank, 1000), coalesce(a.rank, 1000)), coalesce(b.app_id, a.app_id);
