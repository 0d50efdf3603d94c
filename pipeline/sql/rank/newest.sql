-- What the newest snapshot was made from, and how many days that were published before it gave new figures.
SELECT
  m.input_fingerprint,
  (SELECT count(DISTINCT r.day) FROM newest.restatements AS r WHERE r.as_of = m.as_of) AS days_restated
FROM newest.meta AS m;
