-- The days that are counted already, with the fingerprint of the files they were counted from.
SELECT CAST(d.day AS VARCHAR) AS day, d.fingerprint
FROM days AS d;
