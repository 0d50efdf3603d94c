-- Blocks are grouped by ids that lie close together, see array-bits.sql: two rows for each place pay here, where little is
-- kept for each.
SET VARIABLE fast_rows = (
  SELECT (SELECT count(*) FROM snapshot.app_daily) * getvariable('block_days') // count(*) FROM snapshot.coverage
);
SET perfect_ht_threshold = array_bits(2 * getvariable('fast_rows'));
