-- Each app in one block: all of its tokens, and what it cannot have passed on any day, which is found without adding up
-- every day.
CREATE OR REPLACE TEMP TABLE fast_block AS
SELECT
  d.app_id,
  CAST(sum(d.prompt_tokens) + sum(d.completion_tokens) AS DECIMAL(38, 0)) AS total,
  CAST(CAST(max(d.prompt_tokens) AS HUGEINT) + CAST(max(d.completion_tokens) AS HUGEINT) AS DECIMAL(38, 0)) AS peak
FROM snapshot.app_daily AS d
WHERE d.day >= CAST($first_day AS DATE) AND d.day < CAST($first_day AS DATE) + 16
GROUP BY d.app_id;
