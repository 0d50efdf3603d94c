-- What the days that this snapshot brings have, beside the same weekday in the eight weeks before each: twice the
-- median, so that it is a whole number, and how many of these weekdays have data. A day that fills a gap is brought
-- as well, while history that grows backwards is not judged. A day that was published already is judged again only
-- when it is the newest and its figures changed.
WITH brought AS (
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
  FROM brought AS b
  JOIN snapshot.coverage AS e
    ON e.day BETWEEN b.day - 56 AND b.day - 7 AND (b.day - e.day) % 7 = 0 AND e.status <> 'missing'
  GROUP BY b.day
),
measures AS (
  SELECT b.day, 'tokens' AS measure, CAST(b.total_tokens AS HUGEINT) AS measured, coalesce(w.tokens, []) AS earlier
  FROM brought AS b
  LEFT JOIN weekdays AS w ON w.day = b.day
  UNION ALL
  SELECT b.day, 'requests', CAST(b.total_requests AS HUGEINT), coalesce(w.requests, [])
  FROM brought AS b
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
