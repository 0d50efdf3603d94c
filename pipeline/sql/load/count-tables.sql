-- Empty tables for counts that come from elsewhere, in the shapes of count.sql and rejected.sql.
CREATE OR REPLACE TEMP TABLE counted (
  app_id BIGINT,
  rows BIGINT NOT NULL,
  rows_without_tokens BIGINT NOT NULL,
  requests BIGINT NOT NULL,
  prompt_tokens HUGEINT NOT NULL,
  completion_tokens HUGEINT NOT NULL
);
CREATE OR REPLACE TEMP TABLE repeated AS FROM counted LIMIT 0;
CREATE OR REPLACE TEMP TABLE winners AS FROM counted LIMIT 0;
CREATE OR REPLACE TEMP TABLE rejected_rows (
  file VARCHAR NOT NULL,
  row BIGINT NOT NULL,
  reason VARCHAR NOT NULL,
  payload VARCHAR NOT NULL,
  rows BIGINT NOT NULL
);
CREATE OR REPLACE TEMP VIEW rejected AS FROM rejected_rows;
