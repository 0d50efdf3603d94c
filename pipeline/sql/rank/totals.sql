-- Totals of the new snapshot for the run's report.
SELECT
  (SELECT count(*) FROM snapshot.apps) AS apps,
  (SELECT count(*) FROM snapshot.app_daily) AS app_days,
  (SELECT count(*) FROM snapshot.rankings) AS ranking_rows,
  (SELECT count(*) FROM snapshot.restatements AS r WHERE r.as_of = getvariable('as_of') AND r.cause = 'figures') AS days_restated,
  (SELECT count(*) FROM snapshot.coverage AS c WHERE c.status = 'missing' AND c.day >= CAST($first_day AS DATE)) AS days_missing,
  (SELECT CAST(sum(c.total_requests) AS VARCHAR) FROM snapshot.coverage AS c) AS requests_published,
  (SELECT CAST(sum(c.total_tokens) AS VARCHAR) FROM snapshot.coverage AS c) AS tokens_published;
