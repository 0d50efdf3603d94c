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
steps AS (
  SELECT b.rows_before, sum(sum(b.lines)) OVER (ORDER BY b.rows_before) AS shift
  FROM broken AS b
  GROUP BY b.rows_before
),
shifts AS (
  SELECT s.row, t.shift
  FROM staged AS s
  ASOF JOIN steps AS t ON t.rows_before < s.row - $header_lines
  WHERE s.file = $file AND coalesce(s.fault NOT LIKE 'broken line%', true)
)
UPDATE staged AS s
SET row = s.row + h.shift
FROM shifts AS h
WHERE s.file = $file AND s.row = h.row AND coalesce(s.fault NOT LIKE 'broken line%', true);
