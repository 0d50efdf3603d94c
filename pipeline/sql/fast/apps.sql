-- How many apps there are, and how many tags they carry.
SELECT count(DISTINCT t.app_id) AS apps, count(DISTINCT t.tag) AS tags FROM fast_tags AS t;
