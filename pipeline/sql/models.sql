-- Models by day: the table model_daily and the macro that ranks it.

-- name: macros
-- The daily ranking of models. The first name inside a macro states the remedy, as in those of the ranking.
CREATE MACRO main."models: USE the attached database first"(first_day, last_day) AS TABLE
SELECT
  m.day,
  m.model_permaslug,
  m.requests > 0 AND m.model_permaslug <> 'other' AS is_ranked,
  CAST(m.prompt_tokens AS HUGEINT) + CAST(m.completion_tokens AS HUGEINT) AS tokens
FROM main.model_daily AS m
WHERE m.day BETWEEN CAST(first_day AS DATE) AND CAST(last_day AS DATE);
COMMENT ON MACRO TABLE main."models: USE the attached database first" IS 'Tokens of each model by day from first_day to last_day, both inclusive.';

CREATE MACRO main.daily_models(start_date, end_date) AS TABLE
WITH placed AS (
  SELECT
    m.*,
    m.is_ranked AND 50 >= row_number() OVER (
      PARTITION BY m.day, m.is_ranked ORDER BY m.tokens DESC, m.model_permaslug
    ) AS is_named
  FROM main."models: USE the attached database first"(
    window_start(start_date, end_date), window_end(start_date, end_date)
  ) AS m
)
SELECT
  p.day AS date,
  CASE WHEN p.is_named THEN p.model_permaslug ELSE 'other' END AS model_permaslug,
  CAST(sum(p.tokens) AS TOKEN_TOTAL) AS total_tokens
FROM placed AS p
GROUP BY p.day, p.is_named, 2
HAVING p.is_named OR sum(p.tokens) > 0
ORDER BY date, p.is_named DESC, total_tokens DESC, model_permaslug;
COMMENT ON MACRO TABLE main.daily_models IS 'Per UTC day of the window the 50 models with the most tokens, ties in alphabetical order, and last a row other for all other usage of the public apps. Dates as in popular.';

-- name: fill
-- Usage per day and model of the public apps only, so that no row reveals another app. Usage in app_daily without a model is
-- the day's row `other`. The days before the first changed one are there.
INSERT INTO snapshot.model_daily
WITH totals AS (
  SELECT
    u.day,
    u.model_key,
    sum(u.requests) AS requests,
    sum(u.prompt_tokens) AS prompt_tokens,
    sum(u.completion_tokens) AS completion_tokens
  FROM warehouse.usage_by_model AS u
  JOIN warehouse.resolved AS c ON c.app_id = u.app_id
  WHERE c.published AND u.day BETWEEN getvariable('first_changed') AND CAST($data_through AS DATE)
  GROUP BY u.day, u.model_key
),
named AS (
  SELECT t.* EXCLUDE (model_key), m.model
  FROM totals AS t
  JOIN warehouse.models AS m ON m.key = t.model_key
),
-- What remains of a day without its named models.
rest AS (
  SELECT t.day, t.requests, t.prompt_tokens, t.completion_tokens
  FROM day_totals AS t
  WHERE t.day >= getvariable('first_changed')
  UNION ALL
  SELECT n.day, -n.requests, -n.prompt_tokens, -n.completion_tokens
  FROM named AS n
)
SELECT n.day, n.model, n.requests, n.prompt_tokens, n.completion_tokens
FROM named AS n
UNION ALL
SELECT r.day, 'other', sum(r.requests), sum(r.prompt_tokens), sum(r.completion_tokens)
FROM rest AS r
GROUP BY r.day
HAVING sum(r.requests) <> 0 OR sum(r.prompt_tokens) <> 0 OR sum(r.completion_tokens) <> 0
ORDER BY day, model;
