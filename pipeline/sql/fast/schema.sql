-- What serves speed alone stands in a schema of its own: the apps that can stand in a top 200, with small tables of
-- theirs, and bounds on all others.
CREATE SCHEMA snapshot.fast;

-- Days are added up in blocks of 16, counted from 2025-01-01: a long window is a few blocks and two ends.
CREATE MACRO snapshot.fast.block_of(day) AS
  DATE '2025-01-01' + CAST(16 * ((day - DATE '2025-01-01') // 16) AS INTEGER);
COMMENT ON MACRO snapshot.fast.block_of IS 'First day of the block of 16 days that a day lies in.';

CREATE OR REPLACE TEMP TABLE fast_tags AS
SELECT a.app_id, unnest(CASE WHEN len(a.subcategories) = 0 THEN [''] ELSE a.subcategories END) AS tag
FROM snapshot.apps AS a;
