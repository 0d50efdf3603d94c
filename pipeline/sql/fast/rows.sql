-- How many app-days the candidates have, and how many there are in all.
SELECT
  (SELECT count(*) FROM snapshot.app_daily) AS all_rows,
  (
    SELECT count(*)
    FROM snapshot.app_daily AS d
    SEMI JOIN fast_candidates AS c ON c.app_id = d.app_id
  ) AS head_rows;
