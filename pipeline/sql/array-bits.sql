-- Where ids lie close together, DuckDB groups by them in an array instead of a hash table, by default up to 12 bits of
-- them. This is how many bits it may be (perfect_ht_threshold, at most 32) where so many rows are grouped. A place takes up
-- to 105 bytes in each thread, beside what the memory limit counts: all of them get a sixth of that. Four rows for each
-- place pay for clearing the arrays and adding them up.
CREATE OR REPLACE TEMP MACRO array_bits(rows) AS least(32, greatest(12, floor(log2(greatest(1, least(
  rows / 4, parse_formatted_bytes(current_setting('memory_limit')) / 6 / 105
) / current_setting('threads'))))));
