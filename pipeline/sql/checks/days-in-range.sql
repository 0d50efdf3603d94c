-- Every day lies between the floor of the dataset and the last completed day.
SELECT d.day, d.requests, d.tokens
FROM day_totals AS d, snapshot.meta AS m
WHERE d.day < getvariable('floor') OR d.day > m.data_through OR m.data_through >= CAST(m.as_of AS DATE)
ORDER BY d.day;
