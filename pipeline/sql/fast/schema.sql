-- What serves speed alone stands in a schema of its own: the apps that can stand in a top 200, with sums of theirs that
-- stand ready, and bounds on all others.
CREATE SCHEMA snapshot.fast;

CREATE TABLE snapshot.fast.running (
  day DATE,
  app_id BIGINT,
  requests BIGINT,
  tokens BIGINT
);
COMMENT ON TABLE snapshot.fast.running IS 'All usage of the heads up to a marked day, that day included; a row for each marked day from their first usage on.';
COMMENT ON COLUMN snapshot.fast.running.day IS 'The marked day, see mark_of.';
COMMENT ON COLUMN snapshot.fast.running.app_id IS 'The app, see apps.';
COMMENT ON COLUMN snapshot.fast.running.requests IS 'Requests so far.';
COMMENT ON COLUMN snapshot.fast.running.tokens IS 'Prompt and completion tokens so far; DECIMAL(38, 0) where BIGINT is too narrow.';

-- Tags by number, which are grouped in half the time; the empty one stands for none.
CREATE OR REPLACE TEMP TABLE fast_tag_names AS
SELECT CAST(row_number() OVER (ORDER BY t.tag) AS USMALLINT) AS number, t.tag
FROM (SELECT DISTINCT unnest(a.subcategories) AS tag FROM snapshot.apps AS a UNION SELECT '') AS t;

CREATE OR REPLACE TEMP TABLE fast_tags AS
SELECT t.app_id, n.number AS tag
FROM (
  SELECT a.app_id, unnest(CASE WHEN len(a.subcategories) = 0 THEN [''] ELSE a.subcategories END) AS tag
  FROM snapshot.apps AS a
) AS t
JOIN fast_tag_names AS n ON n.tag = t.tag;
