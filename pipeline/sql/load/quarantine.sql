-- Keeps the rejected rows of the day with file, row and reason.
INSERT INTO quarantine (day, file, row, reason, payload, rows)
SELECT getvariable('day'), q.file, q.row, q.reason, q.payload, q.lines
FROM (
  SELECT
    i.*,
    rejection(i.fault, i.ts, i.app_id, i.prompt_tokens, i.completion_tokens, i.requests) AS reason
  FROM incoming AS i
) AS q
WHERE q.reason IS NOT NULL;
