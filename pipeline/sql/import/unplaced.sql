-- Rows of the staged file that have no day to go to.
SELECT
  count(*) AS rows,
  CAST(min(s.row) AS VARCHAR) AS first_row,
  min_by(
    coalesce(s.fault, 'ts "' || coalesce(s.ts, '') || '" is not a UTC timestamp such as 2026-01-05T10:00:00Z'),
    s.row
  ) AS reason
FROM staged AS s
WHERE s.fault IS NOT NULL OR utc_from_text(s.ts) IS NULL;
