-- name: schema
-- The schema fast serves speed alone: the candidates (apps that can reach the top 200), their prefix sums, and an upper bound
-- on the usage of every other app.
CREATE SCHEMA snapshot.fast;

CREATE TABLE snapshot.fast.apps ( -- The candidates: apps with the most tokens of a subcategory in some block of days.
  app_id BIGINT, -- As in apps.
  app_name VARCHAR, -- As in apps.
  subcategories VARCHAR[] -- As in apps.
);

CREATE TABLE snapshot.fast.prefix_sums ( -- Usage of the candidates from the first day of the data to each checkpoint, that day included; no row before their first usage.
  day DATE NOT NULL, -- The checkpoint, see checkpoint_of.
  app_id BIGINT NOT NULL, -- The app, see apps.
  requests BIGINT NOT NULL, -- Requests so far.
  tokens TOKEN_TOTAL NOT NULL -- Prompt and completion tokens so far.
);

CREATE TABLE snapshot.fast.upper_bounds ( -- Upper bounds on the apps outside the candidates, per block of days and subcategory; no row if all apps are candidates.
  first_day DATE NOT NULL, -- First day of the block.
  last_day DATE NOT NULL, -- Last day of the block.
  subcategory VARCHAR NOT NULL, -- The subcategory; empty for apps without any.
  most_in_block TOKEN_TOTAL NOT NULL, -- No such app has more tokens in the block.
  most_on_a_day TOKEN_TOTAL NOT NULL -- No such app has more tokens on a day of the block.
);

CREATE OR REPLACE TEMP TABLE app_subcategories AS
SELECT
  a.app_id,
  unnest(CASE WHEN len(a.subcategories) = 0 THEN [''] ELSE a.subcategories END) AS subcategory
FROM snapshot.apps AS a;

-- The apps with the most tokens of each subcategory in each block, in total and on one day, and the tokens of the next app:
-- NULL if there is none.
CREATE OR REPLACE TEMP TABLE leaders (
  first_day DATE, last_day DATE, subcategory VARCHAR,
  by_total BIGINT[], by_peak BIGINT[], next_total TOKEN_TOTAL, next_peak TOKEN_TOTAL
);

-- name: sizes
-- The sizes that limit the number of candidates, and the present number. Apps without a subcategory count under ''.
SELECT
  (SELECT count(*) FROM snapshot.apps) AS apps,
  (SELECT count(DISTINCT u.tag) + 1 FROM (SELECT unnest(a.subcategories) AS tag FROM snapshot.apps AS a) AS u) AS subcategories,
  (SELECT count(*) FROM snapshot.app_daily) AS app_days,
  (SELECT count(*) FROM snapshot.fast.apps) AS candidates;

-- name: leaders
-- The leaders of one block. The next app after them bounds all others. DOUBLE compares fastest; raising the bound by a
-- millionth exceeds its rounding.
INSERT INTO leaders
WITH volumes AS (
  SELECT
    d.app_id,
    CAST(sum(CAST(d.prompt_tokens AS TOKEN_TOTAL) + d.completion_tokens) AS DOUBLE) AS total,
    CAST(max(CAST(d.prompt_tokens AS TOKEN_TOTAL) + d.completion_tokens) AS DOUBLE) AS peak
  FROM snapshot.app_daily AS d
  WHERE d.day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)
  GROUP BY d.app_id
)
SELECT
  CAST($first_day AS DATE), CAST($last_day AS DATE), s.subcategory,
  max_by(v.app_id, v.total, $level), max_by(v.app_id, v.peak, $level),
  CAST(1.000001 * max(v.total, $level + 1)[$level + 1] AS TOKEN_TOTAL),
  CAST(1.000001 * max(v.peak, $level + 1)[$level + 1] AS TOKEN_TOTAL)
FROM volumes AS v
JOIN app_subcategories AS s ON s.app_id = v.app_id
GROUP BY s.subcategory;

-- name: candidates
-- An app that leads any of its subcategories in any block is a candidate.
INSERT INTO snapshot.fast.apps
SELECT a.*
FROM snapshot.apps AS a
SEMI JOIN (SELECT unnest(list_concat(l.by_total, l.by_peak)) AS app_id FROM leaders AS l) AS c ON c.app_id = a.app_id
ORDER BY a.app_id;

INSERT INTO snapshot.fast.upper_bounds
SELECT l.first_day, l.last_day, l.subcategory, l.next_total, l.next_peak
FROM leaders AS l
WHERE l.next_total IS NOT NULL
ORDER BY ALL;

DROP TABLE leaders;
DROP TABLE app_subcategories;

-- name: prefix-sums
-- The checkpoints among some consecutive days. The day before them is a checkpoint too; its sums are carried on.
INSERT INTO snapshot.fast.prefix_sums
WITH usage AS (
  SELECT d.day, d.app_id, d.requests, CAST(d.prompt_tokens AS TOKEN_TOTAL) + d.completion_tokens AS tokens
  FROM snapshot.app_daily AS d
  SEMI JOIN snapshot.fast.apps AS c ON c.app_id = d.app_id
  WHERE d.day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)
  UNION ALL
  SELECT CAST($first_day AS DATE), p.app_id, p.requests, p.tokens
  FROM snapshot.fast.prefix_sums AS p
  WHERE p.day = CAST($first_day AS DATE) - 1
),
-- A row counts from the first checkpoint on or after its day on.
sums AS (
  SELECT
    snapshot.fast.checkpoint_of(u.day + snapshot.fast.stride() - 1) AS checkpoint,
    u.app_id, CAST(sum(u.requests) AS BIGINT) AS requests, CAST(sum(u.tokens) AS TOKEN_TOTAL) AS tokens
  FROM usage AS u
  GROUP BY ALL
),
checkpoints AS (
  SELECT
    s.app_id,
    CAST(unnest(range(
      min(s.checkpoint), CAST($last_day AS DATE) + 1, to_days(snapshot.fast.stride())
    )) AS DATE) AS checkpoint
  FROM sums AS s
  GROUP BY s.app_id
)
SELECT
  c.checkpoint, c.app_id,
  CAST(sum(s.requests) OVER so_far AS BIGINT), CAST(sum(s.tokens) OVER so_far AS TOKEN_TOTAL)
FROM checkpoints AS c
LEFT JOIN sums AS s ON s.app_id = c.app_id AND s.checkpoint = c.checkpoint
WINDOW so_far AS (PARTITION BY c.app_id ORDER BY c.checkpoint)
ORDER BY ALL;

-- name: macros
-- The macros that the ranking rule needs over the candidates, and the upper bound of a window on all other apps.
COMMENT ON MACRO snapshot.fast.stride IS 'Days from one checkpoint to the next.';

-- The API clamps the dates itself, and the checks of main.window_start and main.window_end take half of the planning.
CREATE MACRO snapshot.fast.window_start(start_date, end_date) AS CAST(start_date AS DATE);
COMMENT ON MACRO snapshot.fast.window_start IS 'The first day as it is, unlike that of main: nothing is clamped.';

CREATE MACRO snapshot.fast.window_end(start_date, end_date) AS CAST(end_date AS DATE);
COMMENT ON MACRO snapshot.fast.window_end IS 'The last day as it is, unlike that of main: nothing is clamped.';

COMMENT ON MACRO snapshot.fast.checkpoint_of IS 'The last checkpoint that is not after a day. Checkpoints are stride() days apart, counted from the eve of 2025-01-01.';

CREATE MACRO snapshot.fast.usage_until(last_day) AS TABLE
SELECT p.app_id, p.requests, p.tokens AS prompt_tokens, CAST(0 AS TOKEN_TOTAL) AS completion_tokens
FROM fast.prefix_sums AS p
WHERE p.day = fast.checkpoint_of(least(CAST(last_day AS DATE), data_through()))

-- name: days-after
-- The end of usage_until where a checkpoint stands for several days: without it the macros are planned in two thirds of the time.
UNION ALL
SELECT d.app_id, d.requests, CAST(d.prompt_tokens AS TOKEN_TOTAL), CAST(d.completion_tokens AS TOKEN_TOTAL)
FROM app_daily AS d
SEMI JOIN fast.apps AS c ON c.app_id = d.app_id
WHERE d.day > fast.checkpoint_of(least(CAST(last_day AS DATE), data_through()))
  AND d.day <= CAST(last_day AS DATE)

-- name: window-macros
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
