CREATE OR REPLACE TEMP MACRO fast_tokens(prompt_tokens, completion_tokens) AS
  CAST(prompt_tokens AS HUGEINT) + CAST(completion_tokens AS HUGEINT);
CREATE OR REPLACE TEMP MACRO fast_fit(tokens) AS CAST(tokens AS DECIMAL(38, 0));

ALTER TABLE snapshot.fast.running ALTER tokens TYPE DECIMAL(38, 0);
