-- The commonest violations in a day's quarantine, for the message of a failed run.
SELECT q.file, q.reason, CAST(sum(q.rows) AS BIGINT) AS rows, min(q.row) AS first_row, min_by(q.payload, q.row) AS example
FROM quarantine AS q
WHERE q.day = CAST($day AS DATE)
GROUP BY q.file, q.reason
ORDER BY rows DESC, q.file, q.reason
LIMIT 3;
