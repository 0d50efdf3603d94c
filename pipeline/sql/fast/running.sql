-- The heads on the marked days among some days in a row. The day before these is marked and done: its sums are where
-- they begin.
INSERT INTO snapshot.fast.running
WITH usage AS (
  SELECT
    snapshot.fast.mark_of(d.day + snapshot.fast.step() - 1) AS day,
    d.app_id,
    d.requests,
    fast_tokens(d.prompt_tokens, d.completion_tokens) AS tokens
  FROM snapshot.app_daily AS d
  SEMI JOIN fast_heads AS h ON h.app_id = d.app_id
  WHERE d.day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)
  UNION ALL
  SELECT
    CAST($first_day AS DATE) + snapshot.fast.step() - 1,
    r.app_id, r.requests, r.tokens
  FROM snapshot.fast.running AS r
  WHERE r.day = CAST($first_day AS DATE) - 1
),
steps AS (
  SELECT
    u.day,
    u.app_id,
    CAST(sum(u.requests) AS BIGINT) AS requests,
    fast_fit(sum(u.tokens)) AS tokens
  FROM usage AS u
  GROUP BY u.day, u.app_id
),
marks AS (
  SELECT CAST($first_day AS DATE) + snapshot.fast.step() * (CAST(n.number AS INTEGER) + 1) - 1 AS day
  FROM range((CAST($last_day AS DATE) - CAST($first_day AS DATE) + 1) // snapshot.fast.step()) AS n (number)
)
SELECT t.day, t.app_id, t.requests, t.tokens
FROM (
  SELECT
    m.day,
    h.app_id,
    sum(s.requests) OVER so_far AS requests,
    sum(s.tokens) OVER so_far AS tokens
  FROM fast_heads AS h
  CROSS JOIN marks AS m
  LEFT JOIN steps AS s ON s.app_id = h.app_id AND s.day = m.day
  WINDOW so_far AS (PARTITION BY h.app_id ORDER BY m.day)
) AS t
WHERE t.requests IS NOT NULL
ORDER BY t.day, t.app_id;
