-- The rows that could be read were numbered as if the broken lines were not there; this makes `row` the line in
-- the file. The k-th row stands behind every broken line that had fewer than k rows before it. (Blank lines of a
-- CSV file are passed over by the reader and not counted.)
WITH broken AS (
  SELECT
    s.row - $header_lines - 1 - coalesce(sum(s.lines) OVER (
      ORDER BY s.row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS rows_before,
    s.lines
  FROM staged AS s
  WHERE s.file = $file AND s.fault LIKE 'broken line%'
),
shifts AS (
  SELECT s.row, sum(b.lines) AS shift
  FROM staged AS s
  JOIN broken AS b ON b.rows_before < s.row - $header_lines
  WHERE s.file = $file AND coalesce(s.fault NOT LIKE 'broken line%', true)
  GROUP BY s.row
)
UPDATE staged AS s
SET row = s.row + h.shift
FROM shifts AS h
WHERE s.file = $file AND s.row = h.row AND coalesce(s.fault NOT LIKE 'broken line%', true);
