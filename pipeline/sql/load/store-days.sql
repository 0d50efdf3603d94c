-- Stores the counts of the days in the list `days`.
CREATE OR REPLACE TEMP VIEW net AS
SELECT c.*
FROM counted AS c
WHERE c.app_id IS NOT NULL AND list_contains(getvariable('days'), c.day);

-- Without models each app has one count per day, and adding it up would take longer than everything else here.
SET VARIABLE is_by_model = (SELECT coalesce(bool_or(c.model IS NOT NULL), false) FROM counted AS c);

-- Sorted by app: this makes the file smaller and the sort of the snapshot's history faster.
INSERT INTO usage_daily
SELECT n.day, n.app_id, n.requests, n.prompt_tokens, n.completion_tokens
FROM net AS n
WHERE NOT getvariable('is_by_model')
UNION ALL
SELECT n.day, n.app_id, sum(n.requests), sum(n.prompt_tokens), sum(n.completion_tokens)
FROM net AS n
WHERE getvariable('is_by_model')
GROUP BY n.day, n.app_id
ORDER BY 1, 2;

INSERT INTO usage_by_model BY NAME
SELECT n.* EXCLUDE (rows, rows_without_tokens)
FROM net AS n
WHERE n.model IS NOT NULL OR n.reasoning_tokens > 0 OR n.cached_tokens > 0;

INSERT INTO usage_by_provider BY NAME
SELECT p.*
FROM provider_counts AS p
WHERE list_contains(getvariable('days'), p.day) AND (p.provider IS NOT NULL OR p.rows_failed > 0);

INSERT INTO days
SELECT
  a.day,
  a.fingerprint,
  coalesce(d.hash, '0'),
  getvariable('counted_at'),
  coalesce(d.rows_read, 0),
  coalesce(d.rows_rejected, 0),
  coalesce(d.rows_duplicate, 0),
  coalesce(d.rows_without_tokens, 0),
  coalesce(d.tokens_read, 0),
  coalesce(d.tokens_rejected, 0),
  coalesce(d.tokens_duplicate, 0),
  coalesce(d.rows_conflicting, 0)
FROM (SELECT unnest(getvariable('days')) AS day, unnest(getvariable('fingerprints')) AS fingerprint) AS a
LEFT JOIN day_totals AS d ON d.day = a.day;
