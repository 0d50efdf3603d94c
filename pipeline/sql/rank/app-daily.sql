-- Usage per day and public app for some days; an alias counts for its canonical app. Sorting the whole history at once would
-- spill to disk; a few days fit into memory. Only apps with aliases are summed: usage_daily already has one row per day of
-- the others, and aggregating those would cost most of the time.
INSERT INTO snapshot.app_daily
WITH merged AS (
  SELECT DISTINCT r.canonical_id
  FROM warehouse.resolved AS r
  WHERE r.app_id <> r.canonical_id
),
usage AS NOT MATERIALIZED (
  SELECT u.day, c.canonical_id, u.requests, u.prompt_tokens, u.completion_tokens
  FROM warehouse.usage_daily AS u
  JOIN warehouse.resolved AS c ON c.app_id = u.app_id
  WHERE c.published AND u.day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)
)
SELECT u.day, u.canonical_id, u.requests, u.prompt_tokens, u.completion_tokens
FROM usage AS u
ANTI JOIN merged AS m ON m.canonical_id = u.canonical_id
UNION ALL
SELECT u.day, u.canonical_id, CAST(sum(u.requests) AS BIGINT), sum(u.prompt_tokens), sum(u.completion_tokens)
FROM usage AS u
SEMI JOIN merged AS m ON m.canonical_id = u.canonical_id
GROUP BY u.day, u.canonical_id
ORDER BY day, canonical_id;
