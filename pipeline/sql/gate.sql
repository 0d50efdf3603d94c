-- The gates: each query returns a reason per finding. They compare the new snapshot with its own history and with the
-- previous one, which is attached as previous. Thresholds are decimal texts in the variables volume_low, volume_high and
-- rows_lost; every comparison is exact.

-- name: macros
-- A threshold in billionths.
CREATE OR REPLACE TEMP MACRO billionths(name) AS
  CAST(CAST(getvariable(name) AS DECIMAL(38, 9)) * 1000000000 AS HUGEINT);

-- name: nothing-published
CREATE OR REPLACE TEMP TABLE published_days (day DATE);

-- name: published-days
CREATE OR REPLACE TEMP TABLE published_days AS
SELECT p.day FROM previous.coverage AS p WHERE p.status <> 'missing';

-- name: volume
-- Each new day, and each published day with changed figures, beside the same weekday in the eight weeks before, if at least
-- four of them have usage. Days before the published history are not compared; of a first snapshot only the last day is.
WITH judged AS (
  SELECT c.day
  FROM snapshot.coverage AS c, snapshot.meta AS m
  WHERE c.status <> 'missing'
    AND (
      (c.day NOT IN (FROM published_days) AND c.day >= (SELECT coalesce(min(p.day), m.data_through) FROM published_days AS p))
      OR c.day IN (
        SELECT r.day
        FROM snapshot.restatements AS r
        SEMI JOIN published_days AS p ON p.day = r.day
        WHERE r.as_of = getvariable('as_of') AND r.cause = 'figures'
      )
    )
),
measures AS (
  UNPIVOT (
    SELECT c.day, CAST(c.total_tokens AS HUGEINT) AS tokens, CAST(c.total_requests AS HUGEINT) AS requests
    FROM snapshot.coverage AS c
    WHERE c.status <> 'missing'
  ) ON tokens, requests INTO NAME measure VALUE amount
),
earlier AS (
  SELECT m.*, m.day - CAST(7 * unnest(range(1, 9)) AS INTEGER) AS earlier_day
  FROM measures AS m
  SEMI JOIN judged AS j ON j.day = m.day
),
-- Twice the median is a whole number.
compared AS (
  SELECT
    m.* EXCLUDE (earlier_day), count(*) AS weeks, list_sort(list(e.amount)) AS amounts,
    amounts[(weeks + 1) // 2] + amounts[weeks // 2 + 1] AS doubled
  FROM earlier AS m
  JOIN measures AS e ON e.measure = m.measure AND e.day = m.earlier_day
  GROUP BY ALL
  HAVING count(*) >= 4
)
SELECT
  format(
    '{} has {} {}, {:g} times {}, the median of the {} {}s before it; allowed are {} to {} times',
    CAST(c.day AS VARCHAR), CAST(c.amount AS VARCHAR), c.measure, 2 * c.amount / c.doubled,
    CAST(c.doubled // 2 AS VARCHAR), c.weeks, strftime(c.day, '%A'), getvariable('volume_low'), getvariable('volume_high')
  ) AS reason
FROM compared AS c
WHERE c.doubled > 0
  AND (
    2 * c.amount * 1000000000 < billionths('volume_low') * c.doubled
    OR 2 * c.amount * 1000000000 > billionths('volume_high') * c.doubled
  )
ORDER BY c.day, c.measure DESC;

-- name: rows
-- A correction replaces a day and does not remove it, so every published day that is missing is a finding: a percentage alone
-- would never reveal one among hundreds. An app-day that is gone although its app is still public is lost; only a
-- restated day can have lost any. If an operator takes an alias away, its usage moves to another app and is not lost: then
-- its row in the registry is as new as the previous snapshot. After the loss of a registry file, an older row counts again.
WITH moved AS (
  SELECT u.day, e.canonical_id AS app_id
  FROM earlier_apps AS e
  JOIN warehouse.registry AS r ON r.app_id = e.app_id
  JOIN warehouse.resolved AS c ON c.app_id = e.app_id
  JOIN warehouse.usage_daily AS u ON u.app_id = e.app_id
  WHERE c.canonical_id <> e.canonical_id AND r.updated_at >= (SELECT CAST(m.as_of AS DATE) FROM previous.meta AS m)
),
lost AS (
  SELECT count(*) AS app_days
  FROM previous.app_daily AS d
  SEMI JOIN (SELECT r.day FROM snapshot.restatements AS r WHERE r.as_of = getvariable('as_of')) AS r ON r.day = d.day
  SEMI JOIN snapshot.apps AS a ON a.app_id = d.app_id
  ANTI JOIN snapshot.app_daily AS n ON n.day = d.day AND n.app_id = d.app_id
  ANTI JOIN moved AS v ON v.day = d.day AND v.app_id = d.app_id
),
before AS (SELECT count(*) AS app_days FROM previous.app_daily)
SELECT
  format(
    '{} of {} published rows (a day of an app) are gone, {:g} %; allowed are {} %',
    l.app_days, b.app_days, 100 * l.app_days / b.app_days, getvariable('rows_lost')
  ) AS reason
FROM lost AS l, before AS b
WHERE 100 * CAST(l.app_days AS HUGEINT) * 1000000000 > billionths('rows_lost') * b.app_days
UNION ALL
SELECT format('the published day {} has no usage any more', CAST(p.day AS VARCHAR))
FROM published_days AS p
LEFT JOIN snapshot.coverage AS c ON c.day = p.day
WHERE coalesce(c.status, 'missing') = 'missing'
ORDER BY reason;

-- name: apps
-- An app is hidden, or made an alias, by a row of its own; an app without rows was lost.
SELECT format('the published app {} "{}" has no row left in the registry', p.app_id, p.app_name) AS reason
FROM previous.apps AS p
ANTI JOIN warehouse.registry AS r ON r.app_id = p.app_id
ORDER BY p.app_id;

-- name: conflicts
-- Rows that share a request_id but differ in app or tokens are not redeliveries: one of them is wrong. One in a thousand is
-- let through.
SELECT
  format(
    '{}: {} of {} rows share a request_id with another one and differ in app or tokens. The files contradict each other; correct or remove one',
    CAST(d.day AS VARCHAR), d.rows_conflicting, d.rows_read
  ) AS reason
FROM warehouse.days AS d
WHERE d.day BETWEEN getvariable('floor') AND getvariable('last_day')
  AND d.rows_conflicting * 1000 > d.rows_read
  AND d.day NOT IN (FROM published_days)
ORDER BY d.day;
