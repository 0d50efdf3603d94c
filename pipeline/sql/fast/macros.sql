-- The macros that the ranking rule needs over the candidates, and the upper bound of a window on all other apps.
COMMENT ON MACRO snapshot.fast.stride IS 'Days from one checkpoint to the next.';

CREATE MACRO snapshot.fast.checkpoint_of(day) AS
  DATE '2024-12-31' + CAST(fast.stride() * ((day - DATE '2024-12-31') // fast.stride()) AS INTEGER);
COMMENT ON MACRO snapshot.fast.checkpoint_of IS 'The last checkpoint that is not after a day. Checkpoints are stride() days apart, counted from the eve of 2025-01-01.';

CREATE MACRO snapshot.fast.usage_until(last_day) AS TABLE
SELECT p.app_id, p.requests, p.tokens AS prompt_tokens, CAST(0 AS DECIMAL(38, 0)) AS completion_tokens
FROM fast.prefix_sums AS p
WHERE p.day = fast.checkpoint_of(least(CAST(last_day AS DATE), data_through()))
UNION ALL
SELECT d.app_id, d.requests, CAST(d.prompt_tokens AS DECIMAL(38, 0)), CAST(d.completion_tokens AS DECIMAL(38, 0))
FROM app_daily AS d
SEMI JOIN fast.apps AS c ON c.app_id = d.app_id
WHERE d.day > fast.checkpoint_of(least(CAST(last_day AS DATE), data_through()))
  AND d.day <= CAST(last_day AS DATE);
COMMENT ON MACRO TABLE snapshot.fast.usage_until IS 'Usage of the candidates from the first day of the data to last_day, in rows that add up to it: the last checkpoint and the few days after it. Prefix sums stand in the column of prompt tokens.';

CREATE MACRO snapshot.fast.usage_between(first_day, last_day) AS TABLE
SELECT u.app_id, u.requests, u.prompt_tokens, u.completion_tokens
FROM fast.usage_until(last_day) AS u
UNION ALL
SELECT u.app_id, -u.requests, -u.prompt_tokens, -u.completion_tokens
FROM fast.usage_until(CAST(first_day AS DATE) - 1) AS u;
COMMENT ON MACRO TABLE snapshot.fast.usage_between IS 'As usage_between, of the candidates alone. Only the sum of prompt and completion tokens has a meaning.';

CREATE MACRO snapshot.fast.upper_bound(start_date, end_date, wanted_category, wanted_subcategory) AS TABLE
WITH bounds AS (
  SELECT
    b.subcategory,
    sum(least(
      CAST(b.most_in_block AS HUGEINT),
      CAST(b.most_on_a_day AS HUGEINT) * (
        least(CAST(end_date AS DATE), b.last_day) - greatest(CAST(start_date AS DATE), b.first_day) + 1
      )
    )) AS tokens
  FROM fast.upper_bounds AS b
  WHERE b.first_day <= CAST(end_date AS DATE)
    AND b.last_day >= CAST(start_date AS DATE)
    AND (wanted_subcategory IS NULL OR b.subcategory = wanted_subcategory)
    AND (
      wanted_category IS NULL
      OR b.subcategory IN (SELECT c.subcategory FROM categories AS c WHERE c.category = wanted_category)
    )
  GROUP BY b.subcategory
)
SELECT max(b.tokens) AS tokens FROM bounds AS b;
COMMENT ON MACRO TABLE snapshot.fast.upper_bound IS 'Most tokens that an app outside the candidates can have inside the window; NULL when there is no such app.';
