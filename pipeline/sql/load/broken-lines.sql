-- Lines that the reader could not split into columns, as rejected rows. An unclosed quote swallows the lines after it, so the
-- line breaks inside are counted: one reject must not hide lost lines.
INSERT INTO staged (file, row, lines, fault, payload)
WITH broken AS (
  SELECT
    s.file_path AS path,
    e.line,
    replace(
      array_to_string(list_sort(list(DISTINCT lower(CAST(e.error_type AS VARCHAR)))), ', '),
      'line size over maximum', 'it must be shorter than 2,000,000 bytes'
    ) AS errors,
    trim(any_value(e.csv_line), chr(10) || chr(13)) AS bytes
  FROM reject_errors AS e
  JOIN reject_scans AS s ON s.scan_id = e.scan_id AND s.file_id = e.file_id
  WHERE e.line > getvariable('header_lines')
  GROUP BY s.file_path, e.line
)
SELECT
  getvariable('staged_files')[list_position(getvariable('staged_paths'), b.path)],
  b.line,
  1 + len(b.bytes) - len(replace(b.bytes, chr(10), '')),
  'broken line: ' || b.errors,
  b.bytes
FROM broken AS b;

-- The reader numbered the other rows without the broken lines; this corrects `row` to the line in the file. The k-th row
-- comes after every broken line with fewer than k rows before it. (The reader skips blank lines of a CSV file without
-- counting them.)
WITH broken AS (
  SELECT
    s.file,
    s.row - getvariable('header_lines') - 1 - coalesce(sum(s.lines) OVER (
      PARTITION BY s.file ORDER BY s.row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS rows_before,
    s.lines
  FROM staged AS s
  WHERE list_contains(getvariable('staged_files'), s.file) AND s.fault LIKE 'broken line%'
),
steps AS (
  SELECT b.file, b.rows_before, sum(sum(b.lines)) OVER (PARTITION BY b.file ORDER BY b.rows_before) AS shift
  FROM broken AS b
  GROUP BY b.file, b.rows_before
),
shifts AS (
  SELECT s.file, s.row, t.shift
  FROM staged AS s
  ASOF JOIN steps AS t ON t.file = s.file AND t.rows_before < s.row - getvariable('header_lines')
  WHERE coalesce(s.fault NOT LIKE 'broken line%', true)
)
UPDATE staged AS s
SET row = s.row + h.shift
FROM shifts AS h
WHERE s.file = h.file AND s.row = h.row AND coalesce(s.fault NOT LIKE 'broken line%', true);
