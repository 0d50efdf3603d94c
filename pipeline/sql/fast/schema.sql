-- The schema fast serves speed alone: the candidates (apps that can reach the top 200), their prefix sums, and an upper bound
-- on the usage of every other app.
CREATE SCHEMA snapshot.fast;

CREATE TABLE snapshot.fast.apps AS FROM snapshot.apps LIMIT 0;
COMMENT ON TABLE snapshot.fast.apps IS 'The candidates: apps with the most tokens of a subcategory in some block of days.';
COMMENT ON COLUMN snapshot.fast.apps.app_id IS 'As in apps.';
COMMENT ON COLUMN snapshot.fast.apps.app_name IS 'As in apps.';
COMMENT ON COLUMN snapshot.fast.apps.subcategories IS 'As in apps.';

CREATE TABLE snapshot.fast.prefix_sums (
  day DATE NOT NULL,
  app_id BIGINT NOT NULL,
  requests BIGINT NOT NULL,
  tokens DECIMAL(38, 0) NOT NULL
);
COMMENT ON TABLE snapshot.fast.prefix_sums IS 'Usage of the candidates from the first day of the data to each checkpoint, that day included; no row before their first usage.';
COMMENT ON COLUMN snapshot.fast.prefix_sums.day IS 'The checkpoint, see checkpoint_of.';
COMMENT ON COLUMN snapshot.fast.prefix_sums.app_id IS 'The app, see apps.';
COMMENT ON COLUMN snapshot.fast.prefix_sums.requests IS 'Requests so far.';
COMMENT ON COLUMN snapshot.fast.prefix_sums.tokens IS 'Prompt and completion tokens so far.';

CREATE TABLE snapshot.fast.upper_bounds (
  first_day DATE NOT NULL,
  last_day DATE NOT NULL,
  subcategory VARCHAR NOT NULL,
  most_in_block DECIMAL(38, 0) NOT NULL,
  most_on_a_day DECIMAL(38, 0) NOT NULL
);
COMMENT ON TABLE snapshot.fast.upper_bounds IS 'Upper bounds on the apps outside the candidates, per block of days and subcategory; no row if all apps are candidates.';
COMMENT ON COLUMN snapshot.fast.upper_bounds.first_day IS 'First day of the block.';
COMMENT ON COLUMN snapshot.fast.upper_bounds.last_day IS 'Last day of the block.';
COMMENT ON COLUMN snapshot.fast.upper_bounds.subcategory IS 'The subcategory; empty for apps without any.';
COMMENT ON COLUMN snapshot.fast.upper_bounds.most_in_block IS 'No such app has more tokens in the block.';
COMMENT ON COLUMN snapshot.fast.upper_bounds.most_on_a_day IS 'No such app has more tokens on a day of the block.';

CREATE OR REPLACE TEMP TABLE app_subcategories AS
SELECT
  a.app_id,
  unnest(CASE WHEN len(a.subcategories) = 0 THEN [''] ELSE a.subcategories END) AS subcategory
FROM snapshot.apps AS a;

-- The apps with the most tokens of each subcategory in each block, in total and on one day, and the tokens of the next app:
-- NULL if there is none.
CREATE OR REPLACE TEMP TABLE leaders (
  first_day DATE, last_day DATE, subcategory VARCHAR,
  by_total BIGINT[], by_peak BIGINT[], next_total DECIMAL(38, 0), next_peak DECIMAL(38, 0)
);
