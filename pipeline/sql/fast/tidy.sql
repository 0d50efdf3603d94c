DROP TABLE fast_heads;
DROP TABLE fast_tops;
DROP TABLE fast_retagged;
DROP TABLE fast_tags;
DROP TABLE fast_tag_names;
DROP TABLE IF EXISTS fast_block;
