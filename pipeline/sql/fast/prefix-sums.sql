-- The checkpoints among some consecutive days. The day before them is a checkpoint too; its sums are carried on.
INSERT INTO snapshot.fast.prefix_sums
WITH usage AS (
  SELECT d.day, d.app_id, d.requests, CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT) AS tokens
  FROM snapshot.app_daily AS d
  SEMI JOIN snapshot.fast.apps AS c ON c.app_id = d.app_id
  WHERE d.day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)
  UNION ALL
  SELECT CAST($first_day AS DATE), p.app_id, p.requests, CAST(p.tokens AS HUGEINT)
  FROM snapshot.fast.prefix_sums AS p
  WHERE p.day = CAST($first_day AS DATE) - 1
),
-- A row counts at every checkpoint on or after its day.
counted AS (
  SELECT
    unnest(range(
      snapshot.fast.checkpoint_of(u.day + snapshot.fast.stride() - 1),
      CAST($last_day AS DATE) + 1,
      to_days(snapshot.fast.stride())
    )) AS checkpoint,
    u.app_id, u.requests, u.tokens
  FROM usage AS u
)
SELECT
  CAST(c.checkpoint AS DATE), c.app_id,
  CAST(sum(c.requests) AS BIGINT), CAST(sum(c.tokens) AS DECIMAL(38, 0))
FROM counted AS c
GROUP BY ALL
ORDER BY ALL;
