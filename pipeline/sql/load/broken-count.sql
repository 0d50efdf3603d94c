-- Did the reader meet lines that it could not split into columns, and which is the first that opens a quote without end?
SELECT
  count(*) FILTER (e.line > $header_lines) > 0 AS broken,
  CAST(min(e.line) FILTER (e.error_type = 'UNQUOTED VALUE') AS VARCHAR) AS unclosed
FROM reject_errors AS e;
