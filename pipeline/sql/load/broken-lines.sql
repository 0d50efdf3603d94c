-- Lines the reader could not split into columns, as rejected rows. An unclosed quote swallows the lines after
-- it into one, so the line breaks inside are counted: lost lines must not hide behind a single reject.
INSERT INTO staged (file, row, lines, fault, payload)
SELECT
  $file,
  e.line,
  1 + len(rtrim(any_value(e.csv_line), chr(10) || chr(13)))
    - len(replace(rtrim(any_value(e.csv_line), chr(10) || chr(13)), chr(10), '')),
  'broken line: ' || lower(string_agg(DISTINCT CAST(e.error_type AS VARCHAR), ', ')),
  any_value(e.csv_line)
FROM reject_errors AS e
WHERE e.line > $header_lines
GROUP BY e.line;
