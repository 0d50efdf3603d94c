-- Would today other rows be written for the settled days? Either the figures of one changed, came or went, or it has usage
-- of an app that counts elsewhere than it did.
WITH moved AS (
  SELECT app_id
  FROM warehouse.kept_apps AS k
  FULL JOIN (SELECT r.app_id, r.canonical_id FROM warehouse.resolved AS r WHERE r.published) AS r USING (app_id)
  WHERE k.canonical_id IS DISTINCT FROM r.canonical_id
),
changed AS (
  SELECT day
  FROM warehouse.kept_days AS k
  FULL JOIN (SELECT d.day, d.content_hash FROM warehouse.days AS d WHERE d.day <= CAST($through AS DATE)) AS d USING (day)
  WHERE k.content_hash IS DISTINCT FROM d.content_hash
)
SELECT
  EXISTS (FROM changed)
  OR EXISTS (
    SELECT 1
    FROM warehouse.usage_daily AS u
    SEMI JOIN moved AS m ON m.app_id = u.app_id
    WHERE u.day <= CAST($through AS DATE)
  ) AS stale;
