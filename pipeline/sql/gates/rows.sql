-- How many app-days the snapshot before has, and how many of them are gone although their app is still public:
-- what the registry takes out is no loss. Only a restated day can have lost any.
WITH restated AS (
  SELECT r.day FROM snapshot.restatements AS r WHERE r.as_of = getvariable('as_of')
),
before AS (
  SELECT d.day, d.app_id
  FROM previous.app_daily AS d
  SEMI JOIN restated AS r ON r.day = d.day
  SEMI JOIN snapshot.apps AS a ON a.app_id = d.app_id
)
SELECT
  (SELECT count(*) FROM previous.app_daily) AS rows_before,
  (SELECT count(*) FROM before AS b ANTI JOIN snapshot.app_daily AS d ON d.day = b.day AND d.app_id = b.app_id)
    AS rows_lost;
