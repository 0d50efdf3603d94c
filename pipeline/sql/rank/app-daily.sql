-- Usage per day and public app, for some days of the history: an alias counts for its canonical app. The whole
-- history at once would be sorted on disk; a month of it fits into memory.
INSERT INTO snapshot.app_daily
SELECT u.day, c.canonical_id, sum(u.requests), sum(u.prompt_tokens), sum(u.completion_tokens)
FROM warehouse.usage_daily AS u
JOIN warehouse.resolved AS c ON c.app_id = u.app_id
WHERE c.published AND u.day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)
GROUP BY u.day, c.canonical_id
ORDER BY u.day, c.canonical_id;
