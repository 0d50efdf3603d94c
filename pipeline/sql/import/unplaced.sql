-- Rows of the staged files that have no day to go to.
WITH unplaced AS (
  SELECT
    s.file,
    s.row,
    coalesce(
      s.fault,
      'ts "' || coalesce(s.ts, '') || '" is not a UTC timestamp such as 2026-01-05T10:00:00Z'
        || CASE WHEN regexp_full_match(s.ts, '\d{9,20}(\.\d+)?') THEN '; say what it counts, such as --map ts=PATH:ms' ELSE '' END
    ) AS reason
  FROM staged AS s
  WHERE s.fault IS NOT NULL OR utc_from_text(s.ts) IS NULL
)
SELECT
  count(*) AS rows,
  min_by(u.file, u.row) AS file,
  CAST(min(u.row) AS VARCHAR) AS first_row,
  min_by(u.reason, u.row) AS reason
FROM unplaced AS u;
