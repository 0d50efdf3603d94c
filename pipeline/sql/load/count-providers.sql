-- Counts the view `validated` by day and provider, without duplicates: served requests, served requests with unknown tokens,
-- and rows of requests that no provider served.
INSERT INTO provider_counts
WITH rows AS (
  SELECT v.day, v.provider, v.requests, v.prompt_tokens IS NULL AS unknown, 1 AS times
  FROM validated AS v
  WHERE (v.provider IS NOT NULL OR v.prompt_tokens IS NULL) AND v.violation IS NULL
  UNION ALL
  SELECT r.day, r.provider, r.requests, r.prompt_tokens IS NULL, -1
  FROM repeats AS r
  WHERE r.provider IS NOT NULL OR r.prompt_tokens IS NULL
)
SELECT
  r.day,
  r.provider,
  CAST(sum(r.times * r.requests) AS BIGINT) AS requests,
  CAST(coalesce(sum(r.times * r.requests) FILTER (r.unknown), 0) AS BIGINT) AS requests_without_tokens,
  CAST(coalesce(sum(r.times) FILTER (r.unknown AND r.requests = 0), 0) AS BIGINT) AS rows_failed
FROM rows AS r
GROUP BY r.day, r.provider;
