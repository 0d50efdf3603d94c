-- The checks of a snapshot before it is published: each query must return no rows. The first line below a name states the
-- check. They read the snapshot beside the warehouse, and the totals of its days (see rank.sql).

-- name: apps-described
-- Every app with usage or a rank is described in the table apps, under the same name.
SELECT DISTINCT r.app_id, r.app_name
FROM snapshot.rankings AS r
LEFT JOIN snapshot.apps AS a ON a.app_id = r.app_id
WHERE a.app_id IS NULL OR a.app_name <> r.app_name
UNION
SELECT d.app_id, NULL
FROM (SELECT DISTINCT app_id FROM snapshot.app_daily) AS d
ANTI JOIN snapshot.apps AS a ON a.app_id = d.app_id
ORDER BY ALL;

-- name: coverage-complete
-- Coverage has one row for every day from the floor to the last completed one, with the totals of app_daily, which has no other.
WITH calendar AS (
  SELECT CAST(unnest(range(
    getvariable('floor'), least(m.data_through + 1, CAST(m.as_of AS DATE)), INTERVAL 1 DAY
  )) AS DATE) AS day
  FROM snapshot.meta AS m
)
SELECT coalesce(k.day, c.day, d.day) AS day, c.status, c.total_requests, d.requests, c.total_tokens, d.tokens
FROM calendar AS k
FULL JOIN snapshot.coverage AS c ON c.day = k.day
FULL JOIN day_totals AS d ON d.day = coalesce(k.day, c.day)
WHERE k.day IS NULL
  OR c.day IS NULL
  OR c.total_requests <> coalesce(d.requests, 0)
  OR c.total_tokens <> coalesce(d.tokens, 0)
  OR (c.status = 'missing' AND d.day IS NOT NULL)
ORDER BY 1;

-- name: known-subcategories
-- Every tag of an app and every filter of a list is in the taxonomy.
SELECT a.app_id, NULL AS category, a.tag AS subcategory
FROM (SELECT p.app_id, unnest(p.subcategories) AS tag FROM snapshot.apps AS p) AS a
ANTI JOIN snapshot.categories AS c ON c.subcategory = a.tag
UNION ALL
SELECT DISTINCT NULL, r.category, r.subcategory
FROM snapshot.rankings AS r
WHERE coalesce(r.category, r.subcategory) IS NOT NULL
  AND NOT EXISTS (
    FROM snapshot.categories AS c WHERE c.category = r.category AND coalesce(c.subcategory = r.subcategory, true)
  )
ORDER BY ALL;

-- name: models-conserved
-- The models of each day, other included, add up exactly to the requests and tokens of the public apps.
WITH models AS (
  SELECT m.day, sum(m.requests) AS requests, sum(m.prompt_tokens) + sum(m.completion_tokens) AS tokens
  FROM snapshot.model_daily AS m
  GROUP BY m.day
)
SELECT coalesce(d.day, m.day) AS day, d.requests, m.requests AS of_models, d.tokens, m.tokens AS tokens_of_models
FROM day_totals AS d
FULL JOIN models AS m ON m.day = d.day
WHERE coalesce(d.requests, 0) <> coalesce(m.requests, 0) OR coalesce(d.tokens, 0) <> coalesce(m.tokens, 0)
ORDER BY 1;

-- name: no-negative-number
-- No request or token count is negative. Column by column, so that DuckDB answers from the minimum of each block.
FROM snapshot.app_daily AS d WHERE d.requests < 0 OR d.prompt_tokens < 0 OR d.completion_tokens < 0
UNION ALL BY NAME
FROM snapshot.model_daily AS m WHERE m.requests < 0 OR m.prompt_tokens < 0 OR m.completion_tokens < 0
UNION ALL BY NAME
FROM snapshot.rankings AS r WHERE r.total_requests < 0 OR r.total_tokens < 0
ORDER BY ALL;

-- name: one-row-per-app-day
-- An app has at most one row per day, and the rows are sorted by day and app, so that readers can skip days.
-- In this order duplicates are neighbours; grouping the whole history would cost far more than this one pass.
SELECT d.day, d.app_id, lag(d.day) OVER () AS day_above, lag(d.app_id) OVER () AS app_above
FROM snapshot.app_daily AS d
QUALIFY d.day < day_above OR (d.day = day_above AND d.app_id <= app_above)
ORDER BY ALL;

-- name: only-public-apps
-- Every app in the snapshot is public in the registry and no alias of another.
-- (No other app has usage or a rank: see apps-described.)
SELECT a.app_id, g.visibility, g.alias_of
FROM snapshot.apps AS a
LEFT JOIN warehouse.registry AS g ON g.app_id = a.app_id
WHERE g.visibility IS DISTINCT FROM 'public' OR g.alias_of IS NOT NULL
ORDER BY a.app_id;

-- name: ranks-without-gaps
-- The ranks of every list are 1 to N, each once, and so are its apps, even those with several tags of a group.
SELECT
  r.window_days, r.sort, r.category, r.subcategory, count(*) AS rows, min(r.rank) AS first_rank, max(r.rank) AS last_rank,
  count(DISTINCT r.app_id) AS apps
FROM snapshot.rankings AS r
GROUP BY r.window_days, r.sort, r.category, r.subcategory
HAVING min(r.rank) <> 1
  OR max(r.rank) <> count(*)
  OR count(DISTINCT r.rank) <> count(*)
  OR count(DISTINCT r.app_id) <> count(*)
ORDER BY ALL;

-- name: usage-conserved
-- Requests and tokens published + hidden + unregistered (and tokens rejected + duplicate) = what was counted and read, to the last digit.
WITH read AS (
  SELECT
    coalesce(sum(d.tokens_read), 0) AS tokens,
    coalesce(sum(d.tokens_rejected), 0) AS rejected,
    coalesce(sum(d.tokens_duplicate), 0) AS duplicate
  FROM warehouse.days AS d
  WHERE d.day <= (SELECT m.data_through FROM snapshot.meta AS m)
),
counted AS (
  SELECT
    coalesce(sum(u.requests), 0) AS requests,
    coalesce(sum(u.requests) FILTER (g.app_id IS NULL), 0) AS requests_unregistered,
    coalesce(sum(u.requests) FILTER (NOT g.published), 0) AS requests_hidden,
    coalesce(sum(u.tokens) FILTER (g.app_id IS NULL), 0) AS tokens_unregistered,
    coalesce(sum(u.tokens) FILTER (NOT g.published), 0) AS tokens_hidden
  FROM app_usage AS u
  LEFT JOIN warehouse.resolved AS g ON g.app_id = u.app_id
),
published AS (
  SELECT coalesce(sum(d.requests), 0) AS requests_published, coalesce(sum(d.tokens), 0) AS tokens_published
  FROM day_totals AS d
)
SELECT c.*, p.*, r.tokens AS read, r.rejected, r.duplicate
FROM read AS r, counted AS c, published AS p
WHERE c.requests <> p.requests_published + c.requests_hidden + c.requests_unregistered
  OR r.tokens <> p.tokens_published + c.tokens_hidden + c.tokens_unregistered + r.rejected + r.duplicate;

-- name: lists-in-order
-- In a popular list no app has more tokens than the app above; in a trending list every app grows, and none grew more.
-- Ties are in order of tokens, then of app_id. The growth is computed without the macro.
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
)
SELECT r.window_days, r.category, r.subcategory, r.rank, r.sort, r.app_id, r.total_tokens, g.triple_excess
FROM snapshot.rankings AS r
LEFT JOIN growth AS g ON r.sort = 'trending' AND g.window_days = r.window_days AND g.app_id = r.app_id
WINDOW list AS (PARTITION BY r.window_days, r.sort, r.category, r.subcategory ORDER BY r.rank)
QUALIFY (r.sort = 'trending' AND coalesce(g.triple_excess <= 0, true))
  OR (coalesce(g.triple_excess, 0), r.total_tokens, -CAST(r.app_id AS HUGEINT)) > (
    lag(coalesce(g.triple_excess, 0)) OVER list, lag(r.total_tokens) OVER list,
    -CAST(lag(r.app_id) OVER list AS HUGEINT)
  )
ORDER BY ALL;
