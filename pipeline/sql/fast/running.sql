-- The heads on every marked day, from the first on which they had usage.
INSERT INTO snapshot.fast.running
WITH steps AS (
  SELECT
    snapshot.fast.mark_of(d.day + 3) AS day,
    d.app_id,
    sum(d.requests) AS requests,
    sum(d.prompt_tokens) AS prompt_tokens,
    sum(d.completion_tokens) AS completion_tokens
  FROM snapshot.fast.daily AS d
  GROUP BY ALL
),
marks AS (
  SELECT CAST(g.day AS DATE) AS day
  FROM generate_series(
    (SELECT min(s.day) FROM steps AS s), CAST($data_through AS DATE), INTERVAL 4 DAY
  ) AS g (day)
)
SELECT t.day, t.app_id, t.requests, t.prompt_tokens, t.completion_tokens
FROM (
  SELECT
    m.day,
    a.app_id,
    sum(s.requests) OVER so_far AS requests,
    sum(s.prompt_tokens) OVER so_far AS prompt_tokens,
    sum(s.completion_tokens) OVER so_far AS completion_tokens
  FROM snapshot.fast.apps AS a
  CROSS JOIN marks AS m
  LEFT JOIN steps AS s ON s.app_id = a.app_id AND s.day = m.day
  WINDOW so_far AS (PARTITION BY a.app_id ORDER BY m.day)
) AS t
WHERE t.requests IS NOT NULL
ORDER BY t.day, t.app_id;
