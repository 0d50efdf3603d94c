-- Rows of the view `incoming_by_name` that name their app.

-- name: claims
-- The texts that name apps, by account: when they were seen first, and what the earliest served rows say about the app.
CREATE OR REPLACE TEMP TABLE claims AS
WITH named AS (
  SELECT
    i.*,
    CASE
      WHEN i.requests > 0
        AND violation(i.day, i.fault, i.ts, 1, i.prompt_tokens, i.completion_tokens, i.requests) IS NULL
      THEN i.ts
    END AS served_at
  FROM incoming_by_name AS i
  WHERE i.app <> ''
)
SELECT
  n.app AS text,
  n.account_id,
  min(n.ts) AS seen_at,
  min(n.served_at) AS named_at,
  min({ served_at: n.served_at, text: n.app_title }) FILTER (n.served_at IS NOT NULL AND trim(n.app_title) <> '') AS title,
  min({ served_at: n.served_at, text: n.app_categories }) FILTER (n.served_at IS NOT NULL AND n.app_categories IS NOT NULL)
    AS categories
FROM named AS n
GROUP BY n.app, n.account_id;

-- name: texts
-- The texts, in the order in which they were seen first.
SELECT c.text AS app
FROM claims AS c
GROUP BY c.text
ORDER BY min(c.seen_at) NULLS LAST, c.text;

-- name: incoming
-- Rows that name their app get its id; a text that identifies no app counts as app 0.
CREATE OR REPLACE TEMP VIEW incoming AS
SELECT
  i.* REPLACE (CASE WHEN i.app IS NULL THEN i.app_id ELSE coalesce(n.app_id, 0) END AS app_id)
FROM incoming_by_name AS i
LEFT JOIN named_apps AS n ON n.text = i.app;

-- name: store-claims
-- Stores the apps. The first text that names an app is its spelling; the account that named it first decides its title and
-- categories.
MERGE INTO app_names AS a
USING (
  WITH accounts AS (
    SELECT
      n.app_id,
      c.account_id,
      min(c.named_at) AS named_at,
      struct_extract(min(c.title), 'text') AS title,
      struct_extract(min(c.categories), 'text') AS categories
    FROM claims AS c
    JOIN named_apps AS n ON n.text = c.text
    GROUP BY n.app_id, c.account_id
  ),
  first_accounts AS (
    FROM accounts AS f
    QUALIFY row_number() OVER (PARTITION BY f.app_id ORDER BY f.named_at NULLS LAST, f.account_id) = 1
  )
  SELECT f.*, n.identity, n.app_name
  FROM first_accounts AS f
  JOIN named_apps AS n ON n.app_id = f.app_id AND n.is_first
) AS f ON f.app_id = a.app_id
WHEN MATCHED AND f.named_at < coalesce(a.named_at, TIMESTAMP 'infinity') THEN UPDATE SET
  named_at = f.named_at, account_id = f.account_id, title = f.title, categories = f.categories
WHEN NOT MATCHED THEN INSERT (app_id, identity, app_name, named_at, account_id, title, categories)
  VALUES (f.app_id, f.identity, f.app_name, f.named_at, f.account_id, f.title, f.categories);
