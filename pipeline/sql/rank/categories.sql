-- The subcategories of one group, in their order.
INSERT INTO snapshot.categories SELECT $category, unnest(CAST($subcategories AS VARCHAR[]));
