-- If ids are dense, DuckDB groups them in an array instead of a hash table, by default up to 12 bits of id. This macro
-- raises the limit (perfect_ht_threshold, at most 32) for large inputs. An array slot takes up to 105 bytes per thread,
-- outside the memory limit: all slots together get a sixth of that limit. Clearing and merging the arrays pays off from
-- four rows per slot on.
CREATE OR REPLACE TEMP MACRO array_bits(rows) AS least(32, greatest(12, floor(log2(greatest(1, least(
  rows / 4, parse_formatted_bytes(current_setting('memory_limit')) / 6 / 105
) / current_setting('threads'))))));
