-- The tops of the settled days, for the nights to come.
INSERT INTO warehouse.kept_tops
SELECT CAST($level AS INTEGER), t.* FROM fast_tops AS t WHERE t.last_day <= CAST($through AS DATE);
