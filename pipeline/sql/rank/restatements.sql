-- What the snapshot before said differently about days it had published already; earlier restatements are kept.
INSERT INTO snapshot.restatements SELECT * FROM previous.restatements;

INSERT INTO snapshot.restatements
WITH before AS (
  SELECT d.day, d.app_id, d.requests, CAST(d.prompt_tokens AS HUGEINT) + d.completion_tokens AS tokens,
    hash(d.app_id, d.requests, CAST(d.prompt_tokens AS HUGEINT), CAST(d.completion_tokens AS HUGEINT)) AS figures
  FROM previous.app_daily AS d
),
after AS (
  SELECT d.day, d.app_id, d.requests, CAST(d.prompt_tokens AS HUGEINT) + d.completion_tokens AS tokens,
    hash(d.app_id, d.requests, CAST(d.prompt_tokens AS HUGEINT), CAST(d.completion_tokens AS HUGEINT)) AS figures
  FROM snapshot.app_daily AS d
),
before_days AS (
  SELECT b.day, sum(b.requests) AS requests, sum(b.tokens) AS tokens, bit_xor(b.figures) AS figures
  FROM before AS b
  GROUP BY b.day
),
after_days AS (
  SELECT a.day, sum(a.requests) AS requests, sum(a.tokens) AS tokens, bit_xor(a.figures) AS figures
  FROM after AS a
  GROUP BY a.day
),
changed_days AS (
  SELECT
    coalesce(b.day, a.day) AS day,
    coalesce(b.requests, 0) AS requests_before,
    coalesce(a.requests, 0) AS requests_after,
    coalesce(b.tokens, 0) AS tokens_before,
    coalesce(a.tokens, 0) AS tokens_after
  FROM before_days AS b
  FULL JOIN after_days AS a ON a.day = b.day
  WHERE b.figures IS DISTINCT FROM a.figures
    AND coalesce(b.day, a.day) <= (SELECT m.data_through FROM previous.meta AS m)
),
changed_apps AS (
  SELECT coalesce(b.day, a.day) AS day, count(*) AS apps_changed
  FROM (SELECT * FROM before SEMI JOIN changed_days AS c ON c.day = before.day) AS b
  FULL JOIN (SELECT * FROM after SEMI JOIN changed_days AS c ON c.day = after.day) AS a
    ON a.day = b.day AND a.app_id = b.app_id
  WHERE b.figures IS DISTINCT FROM a.figures
  GROUP BY 1
)
SELECT
  getvariable('as_of'),
  (SELECT m.as_of FROM previous.meta AS m),
  c.day,
  n.apps_changed,
  c.requests_before,
  c.requests_after,
  c.tokens_before,
  c.tokens_after
FROM changed_days AS c
JOIN changed_apps AS n ON n.day = c.day
ORDER BY c.day;
