-- The rows of the view `incoming` with their violation, and the rejected rows for the quarantine: views, so that nothing
-- is computed that nobody asks for.
CREATE OR REPLACE TEMP VIEW validated AS
SELECT
  i.*,
  violation(i.day, i.fault, i.ts, i.app_id, i.prompt_tokens, i.completion_tokens, i.requests) AS violation
FROM incoming AS i;

CREATE OR REPLACE TEMP VIEW rejected AS
SELECT v.day, v.file, v.row, v.violation AS reason, v.payload, v.lines AS rows
FROM validated AS v
WHERE v.violation IS NOT NULL;
