-- How many candidates there are, and how many app-days in all.
SELECT
  (SELECT count(DISTINCT c.app_id) FROM fast_candidates AS c) AS heads,
  (SELECT count(*) FROM snapshot.app_daily) AS app_days;
