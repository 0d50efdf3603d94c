-- How many tops of a level are saved, and how many apps they say nothing of.
SELECT
  (SELECT count(*) FROM warehouse.kept_tops AS k WHERE k.level = $level) AS tops,
  (SELECT count(*) FROM fast_retagged) AS retagged;
