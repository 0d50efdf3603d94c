-- Each app in one block: all of its tokens, and those of its largest day.
CREATE OR REPLACE TEMP TABLE fast_block AS
SELECT
  d.app_id,
  fast_fit(sum(fast_tokens(d.prompt_tokens, d.completion_tokens))) AS total,
  fast_fit(max(fast_tokens(d.prompt_tokens, d.completion_tokens))) AS peak
FROM snapshot.app_daily AS d
WHERE d.day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)
GROUP BY d.app_id;
