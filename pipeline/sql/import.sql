-- The queries of an import over its staged rows.

-- name: place
-- The UTC day of each row, read once for all days; NULL for a year without four digits.
ALTER TABLE staged ADD COLUMN day DATE;
UPDATE staged SET day = CAST(utc_from_text(ts) AS DATE);
UPDATE staged SET day = NULL WHERE day < DATE '1000-01-01' OR day >= DATE '10000-01-01';

-- name: days
-- Figures of the staged rows by day. A broken count adds nothing here: the next run validates it.
SELECT
  CAST(s.day AS VARCHAR) AS day,
  count(*) AS rows,
  CAST(coalesce(sum(greatest(coalesce(count_from_text(s.requests), 1), 0)), 0) AS VARCHAR) AS requests,
  CAST(coalesce(sum(greatest(count_from_text(s.prompt_tokens), 0)), 0) AS VARCHAR) AS prompt_tokens,
  CAST(coalesce(sum(greatest(count_from_text(s.completion_tokens), 0)), 0) AS VARCHAR) AS completion_tokens,
  CAST(coalesce(
    sum(greatest(count_from_text(s.prompt_tokens), 0) + greatest(count_from_text(s.completion_tokens), 0))
      FILTER (s.app_id IS NULL AND nullif(trim(s.app), '') IS NULL),
    0
  ) AS VARCHAR) AS tokens_without_app,
  count(s.app) > 0 AS has_app,
  count(count_from_text(s.prompt_tokens)) > 0 AS has_prompt_tokens,
  count(count_from_text(s.completion_tokens)) > 0 AS has_completion_tokens,
  count(*) FILTER (nullif(s.request_id, '') IS NULL) AS rows_without_id,
  count(*) FILTER (
    count_from_text(s.cached_tokens) > count_from_text(s.prompt_tokens)
      OR count_from_text(s.reasoning_tokens) > count_from_text(s.completion_tokens)
  ) AS rows_large_parts
FROM staged AS s
GROUP BY s.day
ORDER BY s.day;

-- name: unplaced
-- The first row without a valid day, and how many there are.
WITH unplaced AS (
  SELECT
    s.file,
    s.row,
    coalesce(
      s.fault,
      id_violation(s.request_id),
      CASE WHEN s.app_id IS NULL THEN text_violation(s.app) END,
      'ts "' || coalesce(s.ts, '') || '" is not a UTC timestamp such as 2026-01-05T10:00:00Z'
        || CASE WHEN regexp_full_match(s.ts, '\d{9,20}(\.\d+)?') THEN '; say what it counts, such as --map ts=PATH:ms' ELSE '' END
    ) AS reason
  FROM staged AS s
  WHERE s.fault IS NOT NULL OR s.day IS NULL OR id_violation(s.request_id) IS NOT NULL
    OR s.app_id IS NULL AND text_violation(s.app) IS NOT NULL
)
SELECT count(*) OVER () AS rows, u.file, u.row, u.reason
FROM unplaced AS u
ORDER BY u.row, u.file
LIMIT 1;

-- name: first-rows
-- The first rows, decoded.
SELECT
  s.ts, s.app_id, s.app, s.app_title, s.app_categories, s.prompt_tokens, s.completion_tokens, s.requests, s.request_id,
  s.model, s.provider, s.account_id, s.reasoning_tokens, s.cached_tokens
FROM staged AS s
ORDER BY s.file, s.row
LIMIT 10;
