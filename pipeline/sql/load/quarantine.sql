-- Keeps the rejected rows of the day with file, row and reason.
INSERT INTO quarantine (day, file, row, reason, payload, rows)
SELECT getvariable('day'), r.file, r.row, r.reason, r.payload, r.rows
FROM rejected AS r;
