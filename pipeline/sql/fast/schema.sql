-- What serves speed alone stands in a schema of its own: the apps that can stand in a top 200, with sums of theirs that
-- stand ready, and bounds on all others.
CREATE SCHEMA snapshot.fast;

CREATE TABLE snapshot.fast.running (
  day DATE,
  app_id BIGINT,
  requests BIGINT,
  prompt_tokens BIGINT,
  completion_tokens BIGINT
);
COMMENT ON TABLE snapshot.fast.running IS 'All usage of the heads up to a marked day, that day included; a row for each marked day from their first usage on.';
COMMENT ON COLUMN snapshot.fast.running.day IS 'The marked day, see mark_of.';
COMMENT ON COLUMN snapshot.fast.running.app_id IS 'The app, see apps.';
COMMENT ON COLUMN snapshot.fast.running.requests IS 'Requests so far.';
COMMENT ON COLUMN snapshot.fast.running.prompt_tokens IS 'Prompt tokens so far; DECIMAL(38, 0) where BIGINT is too narrow.';
COMMENT ON COLUMN snapshot.fast.running.completion_tokens IS 'Completion tokens so far; type as prompt_tokens.';

CREATE OR REPLACE TEMP TABLE fast_tags AS
SELECT a.app_id, unnest(CASE WHEN len(a.subcategories) = 0 THEN [''] ELSE a.subcategories END) AS tag
FROM snapshot.apps AS a;
