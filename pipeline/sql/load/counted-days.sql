-- The days that are counted already, with the fingerprint of the files they were counted from; it is empty where the
-- files had too many faults for it, whose rejected rows are kept all the same.
SELECT CAST(d.day AS VARCHAR) AS day, d.fingerprint
FROM days AS d
UNION ALL
SELECT DISTINCT CAST(q.day AS VARCHAR), ''
FROM quarantine AS q
WHERE NOT EXISTS (FROM days AS d WHERE d.day = q.day);
