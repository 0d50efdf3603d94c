-- How many heads there are, and how many app-days in all.
SELECT
  (SELECT count(*) FROM fast_heads) AS heads,
  (SELECT count(*) FROM snapshot.app_daily) AS app_days;
