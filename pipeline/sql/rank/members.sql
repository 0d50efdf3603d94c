-- The apps that one filter lets through, by the macro that filters for everybody else.
INSERT INTO members
SELECT f.number, a.app_id
FROM filters AS f, filtered_apps($category, $subcategory) AS a
WHERE f.number = $number;
