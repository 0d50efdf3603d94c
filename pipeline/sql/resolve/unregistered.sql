-- The unregistered apps with the most tokens; private, for the warehouse's copy of the report.
SELECT
  CAST(u.app_id AS VARCHAR) AS app_id,
  CAST(u.requests AS VARCHAR) AS requests,
  CAST(u.tokens AS VARCHAR) AS tokens
FROM app_usage AS u
ANTI JOIN registry AS r ON r.app_id = u.app_id
WHERE u.app_id <> $unattributed
ORDER BY u.tokens DESC, u.app_id
LIMIT 100;
