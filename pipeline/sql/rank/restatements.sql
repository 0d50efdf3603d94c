-- What the snapshot before said differently about days it had published already.
-- One hash per day tells which days to compare row by row; the comparison decides. (Equal figures give an equal hash
-- where the token columns became wider, too.)
INSERT INTO snapshot.restatements
WITH before_days AS (
  SELECT d.day, bit_xor(hash(d.app_id, d.requests, d.prompt_tokens, d.completion_tokens)) AS figures
  FROM previous.app_daily AS d
  GROUP BY d.day
),
after_days AS (
  SELECT d.day, bit_xor(hash(d.app_id, d.requests, d.prompt_tokens, d.completion_tokens)) AS figures
  FROM snapshot.app_daily AS d
  GROUP BY d.day
),
suspects AS (
  SELECT coalesce(b.day, a.day) AS day
  FROM before_days AS b
  FULL JOIN after_days AS a ON a.day = b.day
  WHERE b.figures IS DISTINCT FROM a.figures
    AND coalesce(b.day, a.day) <= (SELECT m.data_through FROM previous.meta AS m)
),
compared AS (
  SELECT
    coalesce(b.day, a.day) AS day,
    b.requests AS requests_before,
    a.requests AS requests_after,
    b.prompt_tokens AS prompt_before,
    a.prompt_tokens AS prompt_after,
    b.completion_tokens AS completion_before,
    a.completion_tokens AS completion_after,
    b.requests IS DISTINCT FROM a.requests
    OR b.prompt_tokens IS DISTINCT FROM a.prompt_tokens
    OR b.completion_tokens IS DISTINCT FROM a.completion_tokens AS changed
  FROM (SELECT d.* FROM previous.app_daily AS d SEMI JOIN suspects AS s ON s.day = d.day) AS b
  FULL JOIN (SELECT d.* FROM snapshot.app_daily AS d SEMI JOIN suspects AS s ON s.day = d.day) AS a
    ON a.day = b.day AND a.app_id = b.app_id
)
SELECT
  getvariable('as_of'),
  (SELECT m.as_of FROM previous.meta AS m),
  c.day,
  count(*) FILTER (c.changed),
  coalesce(sum(c.requests_before), 0),
  coalesce(sum(c.requests_after), 0),
  coalesce(sum(c.prompt_before) + sum(c.completion_before), 0),
  coalesce(sum(c.prompt_after) + sum(c.completion_after), 0)
FROM compared AS c
GROUP BY c.day
HAVING bool_or(c.changed)
ORDER BY c.day;
