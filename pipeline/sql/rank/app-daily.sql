-- Usage per day and public app: an alias counts for its canonical app.
INSERT INTO snapshot.app_daily
SELECT u.day, c.canonical_id, sum(u.requests), sum(u.prompt_tokens), sum(u.completion_tokens)
FROM warehouse.usage_daily AS u
JOIN warehouse.resolved AS c ON c.app_id = u.app_id
WHERE c.published AND u.day <= CAST($data_through AS DATE)
GROUP BY u.day, c.canonical_id
ORDER BY u.day, c.canonical_id;
