-- The tops of the settled days, as they were found then.
INSERT INTO fast_tops
SELECT k.* EXCLUDE (level) FROM warehouse.kept_tops AS k WHERE k.level = $level;
