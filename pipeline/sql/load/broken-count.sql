-- Did the reader meet lines that it could not split into columns?
SELECT count(*) FILTER (e.line > $header_lines) > 0 AS broken
FROM reject_errors AS e;
