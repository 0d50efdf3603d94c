-- The queries of `nightly -- diff` over two snapshots, attached as before and after.

-- name: totals
-- The contents of both snapshots.
WITH sides AS (
  SELECT 'before' AS side, m.data_through, (SELECT count(*) FROM before.apps) AS apps FROM before.meta AS m
  UNION ALL
  SELECT 'after', m.data_through, (SELECT count(*) FROM after.apps) FROM after.meta AS m
),
usage AS (
  SELECT 'before' AS side, d.requests, CAST(d.prompt_tokens AS HUGEINT) + d.completion_tokens AS tokens
  FROM before.app_daily AS d
  UNION ALL
  SELECT 'after', d.requests, CAST(d.prompt_tokens AS HUGEINT) + d.completion_tokens
  FROM after.app_daily AS d
)
SELECT
  s.side,
  CAST(s.data_through AS VARCHAR) AS data_through,
  s.apps,
  count(u.tokens) AS app_days,
  CAST(coalesce(sum(u.requests), 0) AS VARCHAR) AS total_requests,
  CAST(coalesce(sum(u.tokens), 0) AS VARCHAR) AS total_tokens
FROM sides AS s
LEFT JOIN usage AS u ON u.side = s.side
GROUP BY s.side, s.data_through, s.apps
ORDER BY s.side DESC;

-- name: days
-- Days with different figures, even if their totals are equal; a day that only one side has counts as 0 on the other.
WITH before_days AS (
  SELECT d.day, bit_xor(hash(d.app_id, d.requests, d.prompt_tokens, d.completion_tokens)) AS content
  FROM before.app_daily AS d
  GROUP BY d.day
),
after_days AS (
  SELECT d.day, bit_xor(hash(d.app_id, d.requests, d.prompt_tokens, d.completion_tokens)) AS content
  FROM after.app_daily AS d
  GROUP BY d.day
),
changed AS (
  SELECT coalesce(b.day, a.day) AS day
  FROM before_days AS b
  FULL JOIN after_days AS a ON a.day = b.day
  WHERE b.content IS DISTINCT FROM a.content
),
apps AS (
  SELECT coalesce(b.day, a.day) AS day, count(*) AS changed
  FROM (FROM before.app_daily AS d SEMI JOIN changed AS c ON c.day = d.day) AS b
  FULL JOIN (FROM after.app_daily AS d SEMI JOIN changed AS c ON c.day = d.day) AS a
    ON a.day = b.day AND a.app_id = b.app_id
  WHERE (b.requests, b.prompt_tokens, b.completion_tokens)
    IS DISTINCT FROM (a.requests, a.prompt_tokens, a.completion_tokens)
  GROUP BY 1
),
-- Through JSON, since older snapshots lack the column cause.
causes AS (
  SELECT r.day, list_sort(list(DISTINCT json_extract_string(to_json(r), '$.cause'))) AS causes
  FROM after.restatements AS r
  WHERE r.as_of > (SELECT m.as_of FROM before.meta AS m)
  GROUP BY r.day
)
SELECT
  CAST(p.day AS VARCHAR) AS day,
  CAST(coalesce(b.total_tokens, 0) AS VARCHAR) AS tokens_before,
  CAST(coalesce(a.total_tokens, 0) AS VARCHAR) AS tokens_after,
  CAST(p.changed AS VARCHAR) AS apps_changed,
  coalesce(c.causes, []) AS causes
FROM apps AS p
LEFT JOIN before.coverage AS b ON b.day = p.day
LEFT JOIN after.coverage AS a ON a.day = p.day
LEFT JOIN causes AS c ON c.day = p.day
ORDER BY p.day DESC;

-- name: apps
-- Apps that are new, gone or renamed.
SELECT
  CASE WHEN b.app_id IS NULL THEN 'new' WHEN a.app_id IS NULL THEN 'gone' ELSE 'renamed' END AS change,
  CAST(coalesce(b.app_id, a.app_id) AS VARCHAR) AS app_id,
  coalesce(a.app_name, b.app_name) AS app_name
FROM before.apps AS b
FULL JOIN after.apps AS a ON a.app_id = b.app_id
WHERE b.app_name IS DISTINCT FROM a.app_name
ORDER BY change, coalesce(b.app_id, a.app_id);

-- name: ranks
-- Apps with another rank in the 30-day lists of all apps, best ranks first.
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
