-- Rows that repeat a request_id of the same day: the newest ts counts (ties: the larger values, in the order of
-- the columns), the others are surplus, to be taken off the counts of their app.
CREATE OR REPLACE TEMP TABLE surplus AS
WITH identified AS (
  SELECT i.*
  FROM incoming AS i
  SEMI JOIN repeated AS r ON r.request_id = i.request_id
  WHERE rejection(i.fault, i.ts, i.app_id, i.prompt_tokens, i.completion_tokens, i.requests) IS NULL
),
placed AS (
  SELECT
    i.*,
    row_number() OVER (
      PARTITION BY i.request_id
      ORDER BY i.ts DESC, i.app_id DESC, i.prompt_tokens DESC NULLS LAST, i.completion_tokens DESC NULLS LAST,
        i.requests DESC
    ) AS place
  FROM identified AS i
)
SELECT
  p.app_id,
  count(*) AS rows,
  CAST(count(*) FILTER (p.prompt_tokens IS NULL) AS BIGINT) AS rows_without_tokens,
  CAST(sum(p.requests) AS BIGINT) AS requests,
  CAST(coalesce(sum(p.prompt_tokens), 0) AS HUGEINT) AS prompt_tokens,
  CAST(coalesce(sum(p.completion_tokens), 0) AS HUGEINT) AS completion_tokens
FROM placed AS p
WHERE p.place > 1
GROUP BY p.app_id;
