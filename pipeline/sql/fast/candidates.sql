-- The candidates of a level, still to be found, and the bounds on all who are none.
CREATE OR REPLACE TEMP TABLE fast_candidates (app_id BIGINT);
CREATE OR REPLACE TEMP TABLE fast_tops (
  first_day DATE, last_day DATE, tag VARCHAR,
  least_total DECIMAL(38, 0), least_peak DECIMAL(38, 0), next_total DECIMAL(38, 0), next_peak DECIMAL(38, 0)
);
