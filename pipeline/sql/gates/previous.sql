-- What the snapshot before says of its days: which one is the last, and which ones between its ends have no usage.
SELECT
  CAST(m.data_through AS VARCHAR) AS published_through,
  coalesce(list(CAST(c.day AS VARCHAR) ORDER BY c.day) FILTER (c.day IS NOT NULL), []) AS gaps
FROM previous.meta AS m
LEFT JOIN previous.coverage AS c ON c.status = 'missing' AND c.day >= m.first_day
GROUP BY m.data_through;
