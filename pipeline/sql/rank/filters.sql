-- Every filter of the rankings: none, each group, each subcategory.
CREATE OR REPLACE TEMP TABLE filters AS
SELECT
  CAST(row_number() OVER (
    ORDER BY grouping(c.category) DESC, min(c.rowid), grouping(c.subcategory) DESC
  ) AS INTEGER) AS number,
  c.category, c.subcategory
FROM snapshot.categories AS c
GROUP BY GROUPING SETS ((), (c.category), (c.category, c.subcategory));

-- The apps of each filter, by the public macro.
CREATE OR REPLACE TEMP TABLE members AS
SELECT f.number AS filter, a.app_id
FROM filters AS f, LATERAL (SELECT app_id FROM filtered_apps(f.category, f.subcategory)) AS a;
