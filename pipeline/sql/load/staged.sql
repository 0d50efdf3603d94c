-- The staged rows with their texts decoded; a row without its own bytes is kept as an object of these texts.
CREATE OR REPLACE TEMP VIEW decoded AS
SELECT
  s.file,
  s.row,
  s.lines,
  s.fault,
  utc_from_text(s.ts) AS ts,
  id_from_text(s.app_id) AS app_id,
  count_from_text(s.prompt_tokens) AS prompt_tokens,
  count_from_text(s.completion_tokens) AS completion_tokens,
  coalesce(count_from_text(s.requests), 1) AS requests,
  nullif(s.request_id, '') AS request_id,
  coalesce(
    s.payload,
    CAST(to_json({
      ts: s.ts,
      app_id: s.app_id,
      prompt_tokens: s.prompt_tokens,
      completion_tokens: s.completion_tokens,
      requests: s.requests,
      request_id: s.request_id
    }) AS VARCHAR)
  ) AS payload
FROM staged AS s;
