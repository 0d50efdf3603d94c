-- What makes a usage row good. `day` is the day of its folder; a count that is null or broken arrives as
-- described in values.sql. Requests and their tokens may both be unknown (null), one of the two may not.

CREATE OR REPLACE TEMP MACRO rejection(fault, ts, app_id, prompt_tokens, completion_tokens, requests) AS CASE
  WHEN fault IS NOT NULL THEN fault
  WHEN ts IS NULL THEN 'ts is not a UTC timestamp such as 2026-01-05T10:00:00Z'
  WHEN ts < getvariable('day') OR ts >= getvariable('day') + 1
    THEN 'ts is not on the day of its folder'
  WHEN app_id IS NULL THEN 'app_id is not an integer'
  WHEN prompt_tokens < 0 OR (prompt_tokens IS NULL AND completion_tokens IS NOT NULL)
    THEN 'prompt_tokens is not an integer, 0 or more'
  WHEN completion_tokens < 0 OR (completion_tokens IS NULL AND prompt_tokens IS NOT NULL)
    THEN 'completion_tokens is not an integer, 0 or more'
  WHEN requests < 0 OR requests > 1000000000000 THEN 'requests is not an integer from 0 to 10^12'
END;
