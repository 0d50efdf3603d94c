-- All tokens together fit into BIGINT, so those of one day do as well.
CREATE OR REPLACE TEMP MACRO fast_tokens(prompt_tokens, completion_tokens) AS prompt_tokens + completion_tokens;
CREATE OR REPLACE TEMP MACRO fast_fit(tokens) AS CAST(tokens AS BIGINT);
