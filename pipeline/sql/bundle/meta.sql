-- What the snapshot says about itself; times and days as text.
SELECT
  strftime(m.as_of AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ') AS as_of,
  CAST(m.data_through AS VARCHAR) AS data_through,
  CAST(m.first_day AS VARCHAR) AS first_day,
  m.version,
  m.licence,
  m.licence_url,
  m.publisher,
  m.attribution,
  m.sources,
  m.comparability,
  (SELECT count(*) FROM snapshot.restatements AS r WHERE r.as_of = m.as_of AND r.cause = 'figures') AS days_restated,
  (SELECT CAST(coalesce(sum(c.total_requests), 0) AS VARCHAR) FROM snapshot.coverage AS c) AS total_requests,
  (SELECT CAST(coalesce(sum(c.total_tokens), 0) AS VARCHAR) FROM snapshot.coverage AS c) AS total_tokens
FROM snapshot.meta AS m;
