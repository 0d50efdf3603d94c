-- The public tables and views of a snapshot, readable by DuckDB 1.1 and newer (storage version v1.0.0). The macros are in
-- macros.sql. No HUGEINT: Parquet would turn it into DOUBLE and lose digits. TOKEN_TOTAL stands for the type of totals, see
-- snapshot/create.ts.

-- name: tables
CREATE TABLE meta (
  as_of TIMESTAMPTZ NOT NULL,
  as_of_text VARCHAR NOT NULL,
  data_through DATE NOT NULL,
  first_day DATE NOT NULL,
  version VARCHAR NOT NULL,
  licence VARCHAR NOT NULL,
  licence_url VARCHAR NOT NULL,
  publisher VARCHAR NOT NULL,
  attribution VARCHAR NOT NULL,
  sources VARCHAR,
  comparability VARCHAR NOT NULL,
  input_fingerprint VARCHAR NOT NULL
);
COMMENT ON TABLE meta IS 'One row about this snapshot: when it was computed, how far its data reaches, licence and attribution.';
COMMENT ON COLUMN meta.as_of IS 'Time the snapshot was computed, UTC, whole seconds. Quote it when you reuse the data.';
COMMENT ON COLUMN meta.as_of_text IS 'The same as text: Python reads as_of only where pytz is installed.';
COMMENT ON COLUMN meta.data_through IS 'Most recent completed UTC day in the data.';
COMMENT ON COLUMN meta.first_day IS 'First UTC day in the data.';
COMMENT ON COLUMN meta.version IS 'Label of the schema; stays v1 as long as field names and grain do.';
COMMENT ON COLUMN meta.licence IS 'Licence of the data, SPDX identifier.';
COMMENT ON COLUMN meta.licence_url IS 'Text of the licence.';
COMMENT ON COLUMN meta.publisher IS 'Who publishes the dataset.';
COMMENT ON COLUMN meta.attribution IS 'The line to print when the data is reused.';
COMMENT ON COLUMN meta.sources IS 'Credit lines of the sources the data was made from; NULL when there are none.';
COMMENT ON COLUMN meta.comparability IS 'What to keep in mind when token counts are compared.';
COMMENT ON COLUMN meta.input_fingerprint IS 'Fingerprint of the input; the same input is not published twice in a row.';

CREATE TABLE categories (
  category VARCHAR NOT NULL,
  subcategory VARCHAR PRIMARY KEY
);
COMMENT ON TABLE categories IS 'The taxonomy: category groups and the subcategories inside each.';
COMMENT ON COLUMN categories.category IS 'Category group: coding, creative, productivity or entertainment.';
COMMENT ON COLUMN categories.subcategory IS 'Subcategory, the tag an app carries.';

CREATE TABLE apps (
  app_id BIGINT PRIMARY KEY,
  app_name VARCHAR NOT NULL,
  subcategories VARCHAR[] NOT NULL
);
COMMENT ON TABLE apps IS 'The public apps; aliases are merged into them, hidden and private apps are not here.';
COMMENT ON COLUMN apps.app_id IS 'Identifier of the app; it stays when the name changes.';
COMMENT ON COLUMN apps.app_name IS 'Name of the app at as_of.';
COMMENT ON COLUMN apps.subcategories IS 'Tags of the app at as_of, in alphabetical order; may be empty.';

CREATE TABLE app_daily (
  day DATE NOT NULL,
  app_id BIGINT NOT NULL,
  requests BIGINT NOT NULL,
  prompt_tokens BIGINT NOT NULL,
  completion_tokens BIGINT NOT NULL
);
COMMENT ON TABLE app_daily IS 'Usage per UTC day and public app, aliases merged in. No row means no usage that day; coverage lists missing days.';
COMMENT ON COLUMN app_daily.day IS 'UTC day.';
COMMENT ON COLUMN app_daily.app_id IS 'The app, see apps.';
COMMENT ON COLUMN app_daily.requests IS 'Requests of the day.';
COMMENT ON COLUMN app_daily.prompt_tokens IS 'Prompt tokens of the day.';
COMMENT ON COLUMN app_daily.completion_tokens IS 'Completion tokens of the day.';

CREATE TABLE model_daily (
  day DATE NOT NULL,
  model_permaslug VARCHAR NOT NULL,
  requests BIGINT NOT NULL,
  prompt_tokens BIGINT NOT NULL,
  completion_tokens BIGINT NOT NULL,
  PRIMARY KEY (day, model_permaslug)
);
COMMENT ON TABLE model_daily IS 'Usage of the public apps per UTC day and model. The models of a day add up to its apps.';
COMMENT ON COLUMN model_daily.day IS 'UTC day.';
COMMENT ON COLUMN model_daily.model_permaslug IS 'The model as author/slug, its variants merged in; other is all usage that names no such model.';
COMMENT ON COLUMN model_daily.requests IS 'Requests of the day.';
COMMENT ON COLUMN model_daily.prompt_tokens IS 'Prompt tokens of the day.';
COMMENT ON COLUMN model_daily.completion_tokens IS 'Completion tokens of the day.';

CREATE TABLE rankings (
  window_days INTEGER NOT NULL,
  start_date DATE NOT NULL,
  end_date DATE NOT NULL,
  sort VARCHAR NOT NULL,
  category VARCHAR,
  subcategory VARCHAR,
  rank BIGINT NOT NULL,
  app_id BIGINT NOT NULL,
  app_name VARCHAR NOT NULL,
  total_requests BIGINT NOT NULL,
  total_tokens TOKEN_TOTAL NOT NULL
);
COMMENT ON TABLE rankings IS 'The top 200 of the usual windows (1, 7, 30 and 90 days ending on data_through), both sorts, every filter; made with the macros popular and trending, which answer any other window.';
COMMENT ON COLUMN rankings.window_days IS 'Length of the window in days; the first day is clamped to 2025-01-01.';
COMMENT ON COLUMN rankings.start_date IS 'First UTC day of the window, inclusive.';
COMMENT ON COLUMN rankings.end_date IS 'Last UTC day of the window, inclusive.';
COMMENT ON COLUMN rankings.sort IS 'popular (total tokens) or trending (excess over the average of the three preceding windows).';
COMMENT ON COLUMN rankings.category IS 'Filter: category group; NULL in the list of all apps.';
COMMENT ON COLUMN rankings.subcategory IS 'Filter: subcategory; NULL in the lists of all apps and of a whole group.';
COMMENT ON COLUMN rankings.rank IS 'Rank inside the list, from 1.';
COMMENT ON COLUMN rankings.app_id IS 'The app, see apps.';
COMMENT ON COLUMN rankings.app_name IS 'Name of the app at as_of.';
COMMENT ON COLUMN rankings.total_requests IS 'Requests inside the window.';
COMMENT ON COLUMN rankings.total_tokens IS 'Prompt plus completion tokens inside the window. BIGINT; DECIMAL(38,0) once all usage together passes 2^63.';

CREATE TABLE coverage (
  day DATE PRIMARY KEY,
  status VARCHAR NOT NULL,
  total_requests BIGINT NOT NULL,
  total_tokens TOKEN_TOTAL NOT NULL
);
COMMENT ON TABLE coverage IS 'One row per UTC day from 2025-01-01 to data_through, so that a missing day is not mistaken for zero.';
COMMENT ON COLUMN coverage.day IS 'UTC day.';
COMMENT ON COLUMN coverage.status IS 'complete; partial (some raw rows were rejected; it may be restated as well); restated (its figures changed after it was first published, see restatements); missing (no usage was delivered).';
COMMENT ON COLUMN coverage.total_requests IS 'Published requests of the day; 0 where it is missing.';
COMMENT ON COLUMN coverage.total_tokens IS 'Published tokens of the day; 0 where it is missing.';

CREATE TABLE restatements (
  as_of TIMESTAMPTZ NOT NULL,
  previous_as_of TIMESTAMPTZ NOT NULL,
  day DATE NOT NULL,
  cause VARCHAR NOT NULL DEFAULT 'figures',
  apps_changed BIGINT NOT NULL,
  requests_before BIGINT NOT NULL,
  requests_after BIGINT NOT NULL,
  tokens_before TOKEN_TOTAL NOT NULL,
  tokens_after TOKEN_TOTAL NOT NULL
);
COMMENT ON TABLE restatements IS 'Days whose published figures changed after they were first published; one row per snapshot, day and cause.';
COMMENT ON COLUMN restatements.as_of IS 'The snapshot that first showed the new figures.';
COMMENT ON COLUMN restatements.previous_as_of IS 'The snapshot before it, the last to show the old figures.';
COMMENT ON COLUMN restatements.day IS 'UTC day that changed.';
COMMENT ON COLUMN restatements.cause IS 'figures (usage was counted anew), visibility (an app was hidden or shown), alias (usage counts for another app), added or removed (an app came into the registry or left it).';
COMMENT ON COLUMN restatements.apps_changed IS 'Public apps whose figures of the day changed, came or went by this cause.';
COMMENT ON COLUMN restatements.requests_before IS 'Published requests of the day before.';
COMMENT ON COLUMN restatements.requests_after IS 'Published requests of the day after.';
COMMENT ON COLUMN restatements.tokens_before IS 'Published tokens of the day before.';
COMMENT ON COLUMN restatements.tokens_after IS 'Published tokens of the day after.';

-- name: views
-- The most common queries; the macros answer for any other window. Views are created after all tables: DuckDB before 1.5 takes
-- a view for broken when a table of it changed later.

CREATE VIEW latest_popular AS
SELECT r.rank, r.app_id, r.app_name, r.total_requests, r.total_tokens
FROM rankings AS r
WHERE r.window_days = 30 AND r.sort = 'popular' AND r.category IS NULL AND r.subcategory IS NULL
ORDER BY r.rank;
COMMENT ON VIEW latest_popular IS 'The top 200 apps by tokens in the 30 days that end on data_through.';
COMMENT ON COLUMN latest_popular.rank IS 'Rank from 1.';
COMMENT ON COLUMN latest_popular.app_id IS 'The app, see apps.';
COMMENT ON COLUMN latest_popular.app_name IS 'Name of the app at as_of.';
COMMENT ON COLUMN latest_popular.total_requests IS 'Requests inside the window.';
COMMENT ON COLUMN latest_popular.total_tokens IS 'Prompt plus completion tokens inside the window.';

CREATE VIEW latest_trending AS
SELECT r.rank, r.app_id, r.app_name, r.total_requests, r.total_tokens
FROM rankings AS r
WHERE r.window_days = 30 AND r.sort = 'trending' AND r.category IS NULL AND r.subcategory IS NULL
ORDER BY r.rank;
COMMENT ON VIEW latest_trending IS 'The top 200 apps by growth in the 30 days that end on data_through.';
COMMENT ON COLUMN latest_trending.rank IS 'Rank from 1.';
COMMENT ON COLUMN latest_trending.app_id IS 'The app, see apps.';
COMMENT ON COLUMN latest_trending.app_name IS 'Name of the app at as_of.';
COMMENT ON COLUMN latest_trending.total_requests IS 'Requests inside the window.';
COMMENT ON COLUMN latest_trending.total_tokens IS 'Prompt plus completion tokens inside the window.';

CREATE VIEW app_history AS
SELECT
  d.day,
  d.app_id,
  a.app_name,
  d.requests,
  d.prompt_tokens,
  d.completion_tokens,
  CAST(CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT) AS TOKEN_TOTAL) AS total_tokens
FROM app_daily AS d
JOIN apps AS a ON a.app_id = d.app_id;
COMMENT ON VIEW app_history IS 'The table app_daily with the name of each app and the sum of its tokens.';
COMMENT ON COLUMN app_history.day IS 'UTC day.';
COMMENT ON COLUMN app_history.app_id IS 'The app, see apps.';
COMMENT ON COLUMN app_history.app_name IS 'Name of the app at as_of.';
COMMENT ON COLUMN app_history.requests IS 'Requests of the day.';
COMMENT ON COLUMN app_history.prompt_tokens IS 'Prompt tokens of the day.';
COMMENT ON COLUMN app_history.completion_tokens IS 'Completion tokens of the day.';
COMMENT ON COLUMN app_history.total_tokens IS 'Prompt plus completion tokens of the day.';
