-- The queries of the gates over the new snapshot and the previous one, which is attached as previous.

-- name: previous
-- The last day of the previous snapshot, and its days without usage before that.
SELECT
  CAST(m.data_through AS VARCHAR) AS published_through,
  coalesce(list(CAST(c.day AS VARCHAR) ORDER BY c.day) FILTER (c.day IS NOT NULL), []) AS gaps
FROM previous.meta AS m
LEFT JOIN previous.coverage AS c ON c.status = 'missing' AND c.day >= m.first_day
GROUP BY m.data_through;

-- name: volume
-- Volume of each new day, beside the same weekday in the eight weeks before: twice the median (a whole number), and the
-- number of weekdays with data. Days that fill a gap are new; days before the previous history are not. The newest day
-- is compared again if its figures changed.
WITH new_days AS (
  SELECT c.day, c.total_tokens, c.total_requests
  FROM snapshot.coverage AS c, snapshot.meta AS m
  WHERE c.status <> 'missing'
    AND (
      c.day > coalesce(CAST($published_through AS DATE), m.data_through - 1)
      OR list_contains(CAST($gaps AS DATE[]), c.day)
      OR (
        c.day = m.data_through
        AND EXISTS (
          SELECT 1 FROM snapshot.restatements AS r WHERE r.day = c.day AND r.as_of = getvariable('as_of')
        )
      )
    )
),
weekdays AS (
  SELECT
    b.day,
    list_sort(list(CAST(e.total_tokens AS HUGEINT))) AS tokens,
    list_sort(list(CAST(e.total_requests AS HUGEINT))) AS requests
  FROM new_days AS b
  JOIN snapshot.coverage AS e
    ON e.day BETWEEN b.day - 56 AND b.day - 7 AND (b.day - e.day) % 7 = 0 AND e.status <> 'missing'
  GROUP BY b.day
),
measures AS (
  SELECT b.day, 'tokens' AS measure, CAST(b.total_tokens AS HUGEINT) AS measured, coalesce(w.tokens, []) AS earlier
  FROM new_days AS b
  LEFT JOIN weekdays AS w ON w.day = b.day
  UNION ALL
  SELECT b.day, 'requests', CAST(b.total_requests AS HUGEINT), coalesce(w.requests, [])
  FROM new_days AS b
  LEFT JOIN weekdays AS w ON w.day = b.day
)
SELECT
  CAST(m.day AS VARCHAR) AS day,
  strftime(m.day, '%A') AS weekday,
  m.measure,
  CAST(m.measured AS VARCHAR) AS measured,
  len(m.earlier) AS weeks,
  CAST(coalesce(
    list_extract(m.earlier, (len(m.earlier) + 1) // 2) + list_extract(m.earlier, len(m.earlier) // 2 + 1), 0
  ) AS VARCHAR) AS median_doubled
FROM measures AS m
ORDER BY m.day, m.measure DESC;

-- name: conflicts
-- New days on which more than one row in a thousand contradicts another row of the same request. $published_through is the
-- last day of the previous snapshot, $gaps its missing days.
SELECT
  CAST(d.day AS VARCHAR) AS day,
  CAST(d.rows_conflicting AS VARCHAR) AS rows_conflicting,
  CAST(d.rows_read AS VARCHAR) AS rows_read
FROM warehouse.days AS d
WHERE d.day BETWEEN getvariable('floor') AND getvariable('last_day')
  AND d.rows_conflicting * 1000 > d.rows_read
  AND (
    CAST($published_through AS DATE) IS NULL
    OR d.day > CAST($published_through AS DATE)
    OR list_contains(CAST($gaps AS VARCHAR[]), CAST(d.day AS VARCHAR))
  )
ORDER BY d.day;

-- name: rows
-- App-days of the previous snapshot, and how many of them are gone although their app is still public: removal by the
-- registry is no loss. Only a restated day can have lost any.
WITH restated AS (
  SELECT r.day FROM snapshot.restatements AS r WHERE r.as_of = getvariable('as_of')
),
before AS (
  SELECT d.day, d.app_id
  FROM previous.app_daily AS d
  SEMI JOIN restated AS r ON r.day = d.day
  SEMI JOIN snapshot.apps AS a ON a.app_id = d.app_id
)
SELECT
  (SELECT count(*) FROM previous.app_daily) AS rows_before,
  (SELECT count(*) FROM before AS b ANTI JOIN snapshot.app_daily AS d ON d.day = b.day AND d.app_id = b.app_id)
    AS rows_lost;

-- name: days
-- Days that the previous snapshot covers and this one does not: their files are gone, or the data ends earlier.
SELECT CAST(p.day AS VARCHAR) AS day
FROM previous.coverage AS p
LEFT JOIN snapshot.coverage AS c ON c.day = p.day
WHERE p.status <> 'missing' AND coalesce(c.status, 'missing') = 'missing'
ORDER BY p.day;

-- name: apps
-- Apps of the previous snapshot without any row in the registry. An app is hidden, or made an alias, by a row of its own; an
-- app without rows was lost.
SELECT CAST(p.app_id AS VARCHAR) AS app_id, p.app_name
FROM previous.apps AS p
ANTI JOIN warehouse.registry AS r ON r.app_id = p.app_id
ORDER BY p.app_id;
