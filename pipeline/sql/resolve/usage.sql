-- All usage per app, registered or not: the only scan of the whole history in this stage, also used by the checks.
SET VARIABLE usage_rows = (SELECT count(*) FROM warehouse.usage_daily);
SET perfect_ht_threshold = array_bits(getvariable('usage_rows'));

CREATE OR REPLACE TEMP TABLE app_usage AS
SELECT
  u.app_id,
  sum(u.requests) AS requests,
  sum(u.prompt_tokens) + sum(u.completion_tokens) AS tokens
FROM warehouse.usage_daily AS u
WHERE u.day <= getvariable('last_day')
GROUP BY u.app_id;

RESET perfect_ht_threshold;
