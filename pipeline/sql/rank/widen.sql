-- A day of an app may hold more than 2^63 tokens: exact in DECIMAL(38, 0), which Parquet keeps exact as well.
ALTER TABLE snapshot.app_daily ALTER prompt_tokens TYPE DECIMAL(38, 0);
ALTER TABLE snapshot.app_daily ALTER completion_tokens TYPE DECIMAL(38, 0);
ALTER TABLE snapshot.model_daily ALTER prompt_tokens TYPE DECIMAL(38, 0);
ALTER TABLE snapshot.model_daily ALTER completion_tokens TYPE DECIMAL(38, 0);
