-- Lines the reader could not split into columns, as rejected rows. An unclosed quote swallows the lines after
-- it into one, so the line breaks inside are counted: lost lines must not hide behind a single reject.
WITH broken AS (
  SELECT
    e.line,
    replace(
      array_to_string(list_sort(list(DISTINCT lower(CAST(e.error_type AS VARCHAR)))), ', '),
      'line size over maximum', 'it must be shorter than 2,000,000 bytes'
    ) AS errors,
    trim(any_value(e.csv_line), chr(10) || chr(13)) AS bytes
  FROM reject_errors AS e
  WHERE e.line > $header_lines
  GROUP BY e.line
)
INSERT INTO staged (file, row, lines, fault, payload)
SELECT $file, b.line, 1 + len(b.bytes) - len(replace(b.bytes, chr(10), '')), 'broken line: ' || b.errors, b.bytes
FROM broken AS b;
