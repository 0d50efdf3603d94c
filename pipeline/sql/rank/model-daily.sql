-- Usage per day and model of the public apps only, so that no row reveals another app. Usage in app_daily without a model is
-- the day's row `other`.
INSERT INTO snapshot.model_daily
WITH named AS (
  SELECT
    u.day,
    u.model,
    sum(u.requests) AS requests,
    sum(u.prompt_tokens) AS prompt_tokens,
    sum(u.completion_tokens) AS completion_tokens
  FROM warehouse.usage_by_model AS u
  JOIN warehouse.resolved AS c ON c.app_id = u.app_id
  WHERE c.published AND u.model IS NOT NULL AND u.day <= CAST($data_through AS DATE)
  GROUP BY u.day, u.model
),
named_days AS (
  SELECT
    n.day,
    sum(n.requests) AS requests,
    sum(n.prompt_tokens) AS prompt_tokens,
    sum(n.completion_tokens) AS completion_tokens
  FROM named AS n
  GROUP BY n.day
),
days AS (
  SELECT
    d.day,
    sum(d.requests) AS requests,
    sum(d.prompt_tokens) AS prompt_tokens,
    sum(d.completion_tokens) AS completion_tokens
  FROM snapshot.app_daily AS d
  GROUP BY d.day
),
rest AS (
  SELECT
    d.day,
    'other' AS model,
    d.requests - coalesce(n.requests, 0) AS requests,
    d.prompt_tokens - coalesce(n.prompt_tokens, 0) AS prompt_tokens,
    d.completion_tokens - coalesce(n.completion_tokens, 0) AS completion_tokens
  FROM days AS d
  LEFT JOIN named_days AS n ON n.day = d.day
)
SELECT n.day, n.model, n.requests, n.prompt_tokens, n.completion_tokens
FROM named AS n
UNION ALL
SELECT r.day, r.model, r.requests, r.prompt_tokens, r.completion_tokens
FROM rest AS r
WHERE r.requests <> 0 OR r.prompt_tokens <> 0 OR r.completion_tokens <> 0
ORDER BY day, model;
