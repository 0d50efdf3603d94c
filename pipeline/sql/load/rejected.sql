-- The rejected rows of the day, for the quarantine; a view, so that a clean day costs nothing.
CREATE OR REPLACE TEMP VIEW rejected AS
SELECT q.file, q.row, q.reason, q.payload, q.lines AS rows
FROM (
  SELECT
    i.*,
    rejection(i.fault, i.ts, i.app_id, i.prompt_tokens, i.completion_tokens, i.requests) AS reason
  FROM incoming AS i
) AS q
WHERE q.reason IS NOT NULL;
