-- Apps by a part of their name, ordered by tokens in the window.
SELECT a.app_id, a.app_name, CAST(coalesce(p.total_tokens, 0) AS VARCHAR) AS total_tokens
FROM apps AS a
LEFT JOIN popular($start, $end) AS p ON p.app_id = a.app_id
WHERE contains(lower(a.app_name), lower($text))
ORDER BY coalesce(p.total_tokens, 0) DESC, a.app_id
LIMIT $limit;
