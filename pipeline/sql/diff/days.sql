-- Days whose published figures differ, those whose totals are the same among them; a day that only one side has counts as 0
-- on the other.
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
-- Through JSON, since older snapshots have no column cause.
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
