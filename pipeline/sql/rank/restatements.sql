-- Restatements of earlier snapshots stay.
INSERT INTO snapshot.restatements BY NAME SELECT * FROM previous.restatements;

-- Where each app's usage counted in the previous snapshot. If the warehouse was rebuilt, or an earlier version published, it
-- does not know: then the public apps of that snapshot count for themselves, and other apps are unknown.
CREATE OR REPLACE TEMP TABLE earlier_apps AS
SELECT p.app_id, p.canonical_id, p.published
FROM warehouse.published_apps AS p
WHERE p.snapshot = getvariable('previous');

INSERT INTO earlier_apps
SELECT
  coalesce(r.app_id, p.app_id),
  coalesce(p.app_id, r.canonical_id),
  p.app_id IS NOT NULL OR r.canonical_id IN (SELECT a.app_id FROM previous.apps AS a)
FROM warehouse.resolved AS r
FULL JOIN previous.apps AS p ON p.app_id = r.app_id
WHERE NOT EXISTS (FROM warehouse.published_apps AS k WHERE k.snapshot = getvariable('previous'));

-- Days whose figures differ from the previous snapshot, and why.
-- One hash per day selects the days to compare row by row. Equal figures give an equal hash, even if the token columns became
-- wider.
INSERT INTO snapshot.restatements BY NAME
WITH before_days AS (
  SELECT d.day, bit_xor(hash(d.app_id, d.requests, d.prompt_tokens, d.completion_tokens)) AS figures
  FROM previous.app_daily AS d
  GROUP BY d.day
),
after_days AS (
  SELECT d.day, bit_xor(hash(d.app_id, d.requests, d.prompt_tokens, d.completion_tokens)) AS figures
  FROM snapshot.app_daily AS d
  GROUP BY d.day
),
changed_days AS (
  SELECT coalesce(b.day, a.day) AS day
  FROM before_days AS b
  FULL JOIN after_days AS a ON a.day = b.day
  WHERE b.figures IS DISTINCT FROM a.figures
    AND coalesce(b.day, a.day) <= (SELECT m.data_through FROM previous.meta AS m)
),
before AS (SELECT d.* FROM previous.app_daily AS d SEMI JOIN changed_days AS s ON s.day = d.day),
after AS (SELECT d.* FROM snapshot.app_daily AS d SEMI JOIN changed_days AS s ON s.day = d.day),
-- Today's figures with the aliases and visibilities of the previous snapshot: what differs from `before` was caused by
-- figures, what differs from `after` by the registry.
recounted AS (
  SELECT
    u.day,
    e.canonical_id AS app_id,
    sum(u.requests) AS requests,
    sum(u.prompt_tokens) AS prompt_tokens,
    sum(u.completion_tokens) AS completion_tokens
  FROM warehouse.usage_daily AS u
  SEMI JOIN changed_days AS s ON s.day = u.day
  JOIN earlier_apps AS e ON e.app_id = u.app_id
  WHERE e.published
  GROUP BY u.day, e.canonical_id
),
moved AS (
  SELECT
    app_id,
    [e.canonical_id, r.canonical_id] AS counted_for,
    CASE
      WHEN e.canonical_id IS NULL THEN 'added'
      WHEN r.canonical_id IS NULL THEN 'removed'
      WHEN e.canonical_id <> r.canonical_id THEN 'alias'
      ELSE 'visibility'
    END AS cause
  FROM earlier_apps AS e
  FULL JOIN warehouse.resolved AS r USING (app_id)
  WHERE e.canonical_id IS DISTINCT FROM r.canonical_id OR e.published IS DISTINCT FROM r.published
),
moves AS (
  SELECT DISTINCT u.day, unnest(m.counted_for) AS app_id, m.cause
  FROM warehouse.usage_daily AS u
  SEMI JOIN changed_days AS s ON s.day = u.day
  JOIN moved AS m ON m.app_id = u.app_id
),
changes AS (
  SELECT coalesce(b.day, r.day) AS day, coalesce(b.app_id, r.app_id) AS app_id, 'figures' AS cause
  FROM before AS b
  FULL JOIN recounted AS r ON r.day = b.day AND r.app_id = b.app_id
  WHERE b.requests IS DISTINCT FROM r.requests
    OR b.prompt_tokens IS DISTINCT FROM r.prompt_tokens
    OR b.completion_tokens IS DISTINCT FROM r.completion_tokens
  UNION ALL
  SELECT m.day, m.app_id, m.cause
  FROM moves AS m
  LEFT JOIN recounted AS r ON r.day = m.day AND r.app_id = m.app_id
  LEFT JOIN after AS a ON a.day = m.day AND a.app_id = m.app_id
  WHERE a.requests IS DISTINCT FROM r.requests
    OR a.prompt_tokens IS DISTINCT FROM r.prompt_tokens
    OR a.completion_tokens IS DISTINCT FROM r.completion_tokens
),
totals AS (
  SELECT
    day,
    sum(b.requests) AS requests_before,
    sum(a.requests) AS requests_after,
    sum(b.prompt_tokens) + sum(b.completion_tokens) AS tokens_before,
    sum(a.prompt_tokens) + sum(a.completion_tokens) AS tokens_after
  FROM before AS b
  FULL JOIN after AS a USING (day, app_id)
  GROUP BY day
)
SELECT
  getvariable('as_of') AS as_of,
  (SELECT m.as_of FROM previous.meta AS m) AS previous_as_of,
  c.day,
  c.cause,
  count(*) AS apps_changed,
  coalesce(any_value(t.requests_before), 0) AS requests_before,
  coalesce(any_value(t.requests_after), 0) AS requests_after,
  coalesce(any_value(t.tokens_before), 0) AS tokens_before,
  coalesce(any_value(t.tokens_after), 0) AS tokens_after
FROM changes AS c
LEFT JOIN totals AS t ON t.day = c.day
GROUP BY c.day, c.cause
ORDER BY c.day, c.cause;
