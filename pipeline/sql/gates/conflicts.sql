-- New days on which more than one row in a thousand says something else of a request than another row. $published_through is
-- the last day of the snapshot before, $gaps the days that it lacks in between.
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
