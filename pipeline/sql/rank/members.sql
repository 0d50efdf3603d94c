-- The apps that one filter lets through, by the macro that filters for everybody else.
INSERT INTO members
SELECT CAST($number AS INTEGER), a.app_id FROM filtered_apps($category, $subcategory) AS a;
