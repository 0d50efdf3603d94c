-- Rejected rows by reason, for the run's report.
SELECT q.reason, CAST(sum(q.rows) AS BIGINT) AS rows
FROM quarantine AS q
WHERE q.day <= getvariable('last_day')
GROUP BY q.reason
ORDER BY rows DESC, q.reason;
