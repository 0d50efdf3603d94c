-- A day of an app may exceed 2^63 tokens: DECIMAL(38, 0) is exact, in Parquet too.
ALTER TABLE snapshot.app_daily ALTER prompt_tokens TYPE DECIMAL(38, 0);
ALTER TABLE snapshot.app_daily ALTER completion_tokens TYPE DECIMAL(38, 0);
ALTER TABLE snapshot.model_daily ALTER prompt_tokens TYPE DECIMAL(38, 0);
ALTER TABLE snapshot.model_daily ALTER completion_tokens TYPE DECIMAL(38, 0);
