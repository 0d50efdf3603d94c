-- The heads: whoever is among the first of one of its tags in a block.
CREATE OR REPLACE TEMP TABLE fast_heads AS
SELECT unnest(list_concat(t.by_total, t.by_peak)) AS app_id FROM fast_tops AS t
UNION
SELECT r.app_id FROM fast_retagged AS r;
