-- What was used up to the last day, less what was used before the first one: whatever the length of the window, that is
-- two marked days, and the few days after each.
CREATE MACRO snapshot.fast.usage_between(first_day, last_day) AS TABLE
SELECT r.app_id, r.requests, r.prompt_tokens, r.completion_tokens
FROM fast.running AS r
WHERE r.day = fast.mark_of(least(CAST(last_day AS DATE), fast.data_through()))
UNION ALL
SELECT d.app_id, d.requests, d.prompt_tokens, d.completion_tokens
FROM app_daily AS d
SEMI JOIN fast.apps AS h ON h.app_id = d.app_id
WHERE d.day > fast.mark_of(least(CAST(last_day AS DATE), fast.data_through()))
  AND d.day <= CAST(last_day AS DATE)
UNION ALL
SELECT r.app_id, -r.requests, -r.prompt_tokens, -r.completion_tokens
FROM fast.running AS r
WHERE r.day = fast.mark_of(least(CAST(first_day AS DATE) - 1, fast.data_through()))
UNION ALL
SELECT d.app_id, -d.requests, -d.prompt_tokens, -d.completion_tokens
FROM app_daily AS d
SEMI JOIN fast.apps AS h ON h.app_id = d.app_id
WHERE d.day > fast.mark_of(least(CAST(first_day AS DATE) - 1, fast.data_through()))
  AND d.day <= CAST(first_day AS DATE) - 1;
COMMENT ON MACRO TABLE snapshot.fast.usage_between IS 'As usage_between, of the heads alone.';

-- An app outside has at most the sum of the bounds of the blocks that the window touches, in each of its tags.
CREATE MACRO snapshot.fast.outside(start_date, end_date, wanted_category, wanted_subcategory) AS TABLE
WITH bounds AS (
  SELECT
    o.tag,
    sum(least(
      CAST(o.most_in_all AS HUGEINT),
      CAST(o.most_on_a_day AS HUGEINT) * (
        least(CAST(end_date AS DATE), o.last_day) - greatest(CAST(start_date AS DATE), o.first_day) + 1
      )
    )) AS tokens
  FROM fast.outsiders AS o
  WHERE o.first_day <= CAST(end_date AS DATE)
    AND o.last_day >= CAST(start_date AS DATE)
    AND (wanted_subcategory IS NULL OR o.tag = wanted_subcategory)
    AND (
      wanted_category IS NULL
      OR o.tag IN (SELECT c.subcategory FROM categories AS c WHERE c.category = wanted_category)
    )
  GROUP BY o.tag
)
SELECT max(b.tokens) AS tokens FROM bounds AS b;
COMMENT ON MACRO TABLE snapshot.fast.outside IS 'The tokens that an app which is no head may have inside the window, at most; NULL when there is no such app.';
