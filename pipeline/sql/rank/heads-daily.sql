-- The usage of a window and of the three periods before it, summed to at most two rows per app: one on the first
-- day of the window, one on the day before. For this window the macros find in it what they find in app_daily. The
-- sums of a window may pass 2^63, also where no day does.
CREATE OR REPLACE TABLE heads.app_daily AS
SELECT
  CASE WHEN d.day >= CAST($start_date AS DATE) THEN CAST($start_date AS DATE) ELSE CAST($start_date AS DATE) - 1 END AS day,
  d.app_id,
  CAST(sum(d.requests) AS BIGINT) AS requests,
  CAST(sum(d.prompt_tokens) AS DECIMAL(38, 0)) AS prompt_tokens,
  CAST(sum(d.completion_tokens) AS DECIMAL(38, 0)) AS completion_tokens
FROM snapshot.app_daily AS d
SEMI JOIN head_apps AS h ON h.app_id = d.app_id
WHERE d.day <= CAST($end_date AS DATE)
  AND d.day >= CAST($start_date AS DATE)
    - CAST(3 * (CAST($end_date AS DATE) - CAST($start_date AS DATE) + 1) AS INTEGER)
GROUP BY ALL;
