-- The rejected rows, as they stand in the files; of one day, or of all.
SELECT CAST(q.day AS VARCHAR) AS day, q.file, CAST(q.row AS VARCHAR) AS row, q.rows, q.reason, q.payload
FROM quarantine AS q
WHERE q.day = coalesce(CAST($day AS DATE), q.day)
ORDER BY q.day DESC, q.file, q.row;
