-- The models of each day, other included, add up exactly to the requests and tokens of the public apps.
WITH models AS (
  SELECT m.day, sum(m.requests) AS requests, sum(m.prompt_tokens) + sum(m.completion_tokens) AS tokens
  FROM snapshot.model_daily AS m
  GROUP BY m.day
)
SELECT coalesce(d.day, m.day) AS day, d.requests, m.requests AS of_models, d.tokens, m.tokens AS tokens_of_models
FROM day_totals AS d
FULL JOIN models AS m ON m.day = d.day
WHERE coalesce(d.requests, 0) <> coalesce(m.requests, 0) OR coalesce(d.tokens, 0) <> coalesce(m.tokens, 0)
ORDER BY 1;
