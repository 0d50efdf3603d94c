-- Rows that name their app get its id; a text that identifies no app counts as app 0.
CREATE OR REPLACE TEMP VIEW incoming AS
SELECT
  i.* REPLACE (CASE WHEN i.app IS NULL THEN i.app_id ELSE coalesce(n.app_id, 0) END AS app_id)
FROM incoming_by_name AS i
LEFT JOIN named_apps AS n ON n.text = i.app;
