-- Every growing app of a window in the order of the rule.
CREATE OR REPLACE TEMP TABLE whole AS
SELECT r.rank, r.app_id, r.total_requests, r.total_tokens FROM trending($start_date, $end_date) AS r;
