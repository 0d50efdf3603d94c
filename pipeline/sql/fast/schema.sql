-- What serves speed alone stands in a schema of its own: the apps that can stand in a top 200, with tables of theirs
-- that hardly need adding up, and bounds on all others.
CREATE SCHEMA snapshot.fast;

-- Every fourth day is marked: the figures up to it stand ready. The marks are counted from the eve of 2025-01-01.
CREATE MACRO snapshot.fast.mark_of(day) AS
  DATE '2024-12-31' + CAST(4 * ((day - DATE '2024-12-31') // 4) AS INTEGER);
COMMENT ON MACRO snapshot.fast.mark_of IS 'The last marked day that is not after a day.';

CREATE TABLE snapshot.fast.running (
  day DATE,
  app_id BIGINT,
  requests BIGINT,
  prompt_tokens BIGINT,
  completion_tokens BIGINT
);
COMMENT ON TABLE snapshot.fast.running IS 'All usage of the heads up to a marked day, that day included.';
COMMENT ON COLUMN snapshot.fast.running.day IS 'The marked day.';
COMMENT ON COLUMN snapshot.fast.running.app_id IS 'The app, see apps.';
COMMENT ON COLUMN snapshot.fast.running.requests IS 'Requests so far.';
COMMENT ON COLUMN snapshot.fast.running.prompt_tokens IS 'Prompt tokens so far; DECIMAL(38, 0) where BIGINT is too narrow for an app.';
COMMENT ON COLUMN snapshot.fast.running.completion_tokens IS 'Completion tokens so far; type as prompt_tokens.';

CREATE OR REPLACE TEMP TABLE fast_tags AS
SELECT a.app_id, unnest(CASE WHEN len(a.subcategories) = 0 THEN [''] ELSE a.subcategories END) AS tag
FROM snapshot.apps AS a;
