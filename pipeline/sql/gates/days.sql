-- Days that the snapshot before covers and this one does not, be it that their files are gone or that the data
-- now ends before them.
SELECT CAST(p.day AS VARCHAR) AS day
FROM previous.coverage AS p
LEFT JOIN snapshot.coverage AS c ON c.day = p.day
WHERE p.status <> 'missing' AND coalesce(c.status, 'missing') = 'missing'
ORDER BY p.day;
