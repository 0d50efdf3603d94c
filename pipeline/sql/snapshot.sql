-- The public tables and views of a snapshot, readable by DuckDB 1.1 and newer (storage version v1.0.0). The macros are in
-- macros.sql. No HUGEINT: Parquet would turn it into DOUBLE and lose digits. TOKEN_TOTAL stands for the type of totals. The
-- comments behind tables, views and columns are published with the file: snapshot/create.ts.

-- name: tables
CREATE TABLE meta ( -- One row about this snapshot: when it was computed, how far its data reaches, licence and attribution.
  as_of TIMESTAMPTZ NOT NULL, -- Time the snapshot was computed, UTC, whole seconds. Quote it when you reuse the data.
  as_of_text VARCHAR NOT NULL, -- The same as text: Python reads as_of only where pytz is installed.
  data_through DATE NOT NULL, -- Most recent completed UTC day in the data.
  first_day DATE NOT NULL, -- First UTC day in the data.
  version VARCHAR NOT NULL, -- Label of the schema; stays v1 as long as field names and grain do.
  licence VARCHAR NOT NULL, -- Licence of the data, SPDX identifier.
  licence_url VARCHAR NOT NULL, -- Text of the licence.
  publisher VARCHAR NOT NULL, -- Who publishes the dataset.
  attribution VARCHAR NOT NULL, -- The line to print when the data is reused.
  sources VARCHAR, -- Credit lines of the sources the data was made from; NULL when there are none.
  comparability VARCHAR NOT NULL, -- What to keep in mind when token counts are compared.
  input_fingerprint VARCHAR NOT NULL -- Fingerprint of the input; the same input is not published twice in a row.
);

CREATE TABLE categories ( -- The taxonomy: category groups and the subcategories inside each.
  category VARCHAR NOT NULL, -- Category group: coding, creative, productivity or entertainment.
  subcategory VARCHAR PRIMARY KEY -- Subcategory, the tag an app carries.
);

CREATE TABLE apps ( -- The public apps; aliases are merged into them, hidden and private apps are not here.
  app_id BIGINT PRIMARY KEY, -- Identifier of the app; it stays when the name changes.
  app_name VARCHAR NOT NULL, -- Name of the app at as_of.
  subcategories VARCHAR[] NOT NULL -- Tags of the app at as_of, in alphabetical order; may be empty.
);

CREATE TABLE app_daily ( -- Usage per UTC day and public app, aliases merged in. No row means no usage that day; coverage lists missing days.
  day DATE NOT NULL, -- UTC day.
  app_id BIGINT NOT NULL, -- The app, see apps.
  requests BIGINT NOT NULL, -- Requests of the day.
  prompt_tokens BIGINT NOT NULL, -- Prompt tokens of the day.
  completion_tokens BIGINT NOT NULL -- Completion tokens of the day.
);

CREATE TABLE model_daily ( -- Usage of the public apps per UTC day and model. The models of a day add up to its apps.
  day DATE NOT NULL, -- UTC day.
  model_permaslug VARCHAR NOT NULL, -- The model as author/slug, its variants merged in; other is all usage that names no such model.
  requests BIGINT NOT NULL, -- Requests of the day.
  prompt_tokens BIGINT NOT NULL, -- Prompt tokens of the day.
  completion_tokens BIGINT NOT NULL, -- Completion tokens of the day.
  PRIMARY KEY (day, model_permaslug)
);

CREATE TABLE rankings ( -- The top 200 of the usual windows (1, 7, 30 and 90 days ending on data_through), both sorts, every filter; made with the macros popular and trending, which answer any other window.
  window_days INTEGER NOT NULL, -- Length of the window in days; the first day is clamped to 2025-01-01.
  start_date DATE NOT NULL, -- First UTC day of the window, inclusive.
  end_date DATE NOT NULL, -- Last UTC day of the window, inclusive.
  sort VARCHAR NOT NULL, -- popular (total tokens) or trending (excess over the average of the three preceding windows).
  category VARCHAR, -- Filter: category group; NULL in the list of all apps.
  subcategory VARCHAR, -- Filter: subcategory; NULL in the lists of all apps and of a whole group.
  rank BIGINT NOT NULL, -- Rank inside the list, from 1.
  app_id BIGINT NOT NULL, -- The app, see apps.
  app_name VARCHAR NOT NULL, -- Name of the app at as_of.
  total_requests BIGINT NOT NULL, -- Requests inside the window.
  total_tokens TOKEN_TOTAL NOT NULL -- Prompt plus completion tokens inside the window. BIGINT; DECIMAL(38,0) once all usage together passes 2^63.
);

CREATE TABLE coverage ( -- One row per UTC day from 2025-01-01 to data_through, so that a missing day is not mistaken for zero.
  day DATE PRIMARY KEY, -- UTC day.
  status VARCHAR NOT NULL, -- complete; partial (some raw rows were rejected; it may be restated as well); restated (its figures changed after it was first published, see restatements); missing (no usage was delivered).
  total_requests BIGINT NOT NULL, -- Published requests of the day; 0 where it is missing.
  total_tokens TOKEN_TOTAL NOT NULL -- Published tokens of the day; 0 where it is missing.
);

CREATE TABLE restatements ( -- Days whose published figures changed after they were first published; one row per snapshot, day and cause.
  as_of TIMESTAMPTZ NOT NULL, -- The snapshot that first showed the new figures.
  previous_as_of TIMESTAMPTZ NOT NULL, -- The snapshot before it, the last to show the old figures.
  day DATE NOT NULL, -- UTC day that changed.
  cause VARCHAR NOT NULL DEFAULT 'figures', -- figures (usage was counted anew), visibility (an app was hidden or shown), alias (usage counts for another app), added or removed (an app came into the registry or left it).
  apps_changed BIGINT NOT NULL, -- Public apps whose figures of the day changed, came or went by this cause.
  requests_before BIGINT NOT NULL, -- Published requests of the day before.
  requests_after BIGINT NOT NULL, -- Published requests of the day after.
  tokens_before TOKEN_TOTAL NOT NULL, -- Published tokens of the day before.
  tokens_after TOKEN_TOTAL NOT NULL -- Published tokens of the day after.
);

-- name: latest-view
-- The most common queries, a view for each SORT; the macros answer for any other window. Views are created after all tables:
-- DuckDB before 1.5 takes a view for broken when a table of it changed later.
CREATE VIEW latest_SORT AS SELECT -- The top 200 apps of the 30 days that end on data_through, sorted by SORT: see rankings.sort.
  r.rank, -- Rank from 1.
  r.app_id, -- The app, see apps.
  r.app_name, -- Name of the app at as_of.
  r.total_requests, -- Requests inside the window.
  r.total_tokens -- Prompt plus completion tokens inside the window.
FROM rankings AS r
WHERE r.window_days = 30 AND r.sort = 'SORT' AND r.category IS NULL AND r.subcategory IS NULL
ORDER BY r.rank;

-- name: history-view
CREATE VIEW app_history AS SELECT -- The table app_daily with the name of each app and the sum of its tokens.
  d.day, -- UTC day.
  d.app_id, -- The app, see apps.
  a.app_name, -- Name of the app at as_of.
  d.requests, -- Requests of the day.
  d.prompt_tokens, -- Prompt tokens of the day.
  d.completion_tokens, -- Completion tokens of the day.
  CAST(CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT) AS TOKEN_TOTAL)
  AS total_tokens -- Prompt plus completion tokens of the day.
FROM app_daily AS d
JOIN apps AS a ON a.app_id = d.app_id;
