-- What the new snapshot holds, for the run's report.
SELECT
  (SELECT count(*) FROM snapshot.apps) AS apps,
  (SELECT count(*) FROM snapshot.app_daily) AS app_days,
  (SELECT count(*) FROM snapshot.rankings) AS ranking_rows,
  (SELECT count(*) FROM snapshot.restatements AS r WHERE r.as_of = getvariable('as_of')) AS days_restated,
  (SELECT count(*) FROM snapshot.coverage AS c WHERE c.status = 'missing' AND c.day >= CAST($first_day AS DATE)) AS days_missing,
  (SELECT CAST(coalesce(sum(d.requests), 0) AS VARCHAR) FROM snapshot.app_daily AS d) AS requests_published,
  (SELECT CAST(coalesce(sum(d.prompt_tokens) + sum(d.completion_tokens), 0) AS VARCHAR) FROM snapshot.app_daily AS d) AS tokens_published;
