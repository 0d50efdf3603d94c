-- The tags by which tonight's tops are found.
INSERT INTO warehouse.kept_tags SELECT a.app_id, a.subcategories FROM snapshot.apps AS a;
