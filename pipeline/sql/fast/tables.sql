-- The heads, and the bounds on all others.
CREATE TABLE snapshot.fast.apps AS
SELECT a.* FROM snapshot.apps AS a SEMI JOIN fast_heads AS h ON h.app_id = a.app_id ORDER BY a.app_id;
COMMENT ON TABLE snapshot.fast.apps IS 'The heads: apps that were among the first of one of their tags at some time.';
COMMENT ON COLUMN snapshot.fast.apps.app_id IS 'As in apps.';
COMMENT ON COLUMN snapshot.fast.apps.app_name IS 'As in apps.';
COMMENT ON COLUMN snapshot.fast.apps.subcategories IS 'As in apps.';

-- Whoever is no head has at most what stands next after the first ones, in each of its tags.
CREATE TABLE snapshot.fast.outsiders AS
SELECT t.first_day, t.last_day, t.tag, t.next_total AS most_in_all, t.next_peak AS most_on_a_day
FROM fast_tops AS t
WHERE t.next_total IS NOT NULL
ORDER BY ALL;
COMMENT ON TABLE snapshot.fast.outsiders IS 'Bounds on the apps that are no heads, per block and tag; no row where all are heads.';
COMMENT ON COLUMN snapshot.fast.outsiders.first_day IS 'First day of the block.';
COMMENT ON COLUMN snapshot.fast.outsiders.last_day IS 'Last day of the block.';
COMMENT ON COLUMN snapshot.fast.outsiders.tag IS 'A subcategory; empty for apps without any.';
COMMENT ON COLUMN snapshot.fast.outsiders.most_in_all IS 'No such app has more tokens in the block.';
COMMENT ON COLUMN snapshot.fast.outsiders.most_on_a_day IS 'No such app has more tokens on a day of the block.';
