-- Of each tag in a block: the first so many apps by all tokens and by the largest day, and bounds on all others, NULL
-- where there are none.
CREATE OR REPLACE TEMP TABLE fast_tops (
  first_day DATE, last_day DATE, tag VARCHAR,
  by_total BIGINT[], by_peak BIGINT[], next_total DECIMAL(38, 0), next_peak DECIMAL(38, 0)
);

-- Apps that are heads whatever they have.
CREATE OR REPLACE TEMP TABLE fast_retagged (app_id BIGINT);
