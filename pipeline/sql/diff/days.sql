-- Days whose published totals differ; a day that only one side has counts as 0 on the other.
SELECT
  CAST(coalesce(b.day, a.day) AS VARCHAR) AS day,
  CAST(coalesce(b.total_tokens, 0) AS VARCHAR) AS tokens_before,
  CAST(coalesce(a.total_tokens, 0) AS VARCHAR) AS tokens_after
FROM before.coverage AS b
FULL JOIN after.coverage AS a ON a.day = b.day
WHERE (coalesce(b.total_tokens, 0), coalesce(b.total_requests, 0))
  <> (coalesce(a.total_tokens, 0), coalesce(a.total_requests, 0))
ORDER BY coalesce(b.day, a.day) DESC;
