-- Every day lies between the floor of the dataset and the last completed day.
SELECT d.day, count(*) AS rows
FROM snapshot.app_daily AS d, snapshot.meta AS m
WHERE d.day < getvariable('floor') OR d.day > m.data_through OR m.data_through >= CAST(m.as_of AS DATE)
GROUP BY d.day
ORDER BY d.day;
