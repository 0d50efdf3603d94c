-- No request_id repeats on this day: nothing to take off.
CREATE OR REPLACE TEMP TABLE surplus (
  app_id BIGINT,
  rows BIGINT,
  rows_without_tokens BIGINT,
  requests BIGINT,
  prompt_tokens HUGEINT,
  completion_tokens HUGEINT
);
