-- Apps that came, went or changed their name.
SELECT
  CASE WHEN b.app_id IS NULL THEN 'new' WHEN a.app_id IS NULL THEN 'gone' ELSE 'renamed' END AS change,
  CAST(coalesce(b.app_id, a.app_id) AS VARCHAR) AS app_id,
  coalesce(a.app_name, b.app_name) AS app_name
FROM before.apps AS b
FULL JOIN after.apps AS a ON a.app_id = b.app_id
WHERE b.app_name IS DISTINCT FROM a.app_name
ORDER BY change, coalesce(b.app_id, a.app_id);
