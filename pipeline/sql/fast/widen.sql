ALTER TABLE snapshot.fast.running ALTER prompt_tokens TYPE DECIMAL(38, 0);
ALTER TABLE snapshot.fast.running ALTER completion_tokens TYPE DECIMAL(38, 0);
