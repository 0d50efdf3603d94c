-- Every app of a window in the order of the rule.
CREATE OR REPLACE TEMP TABLE whole AS
SELECT r.rank, r.app_id FROM popular($start_date, $end_date) AS r;
