-- A day of an app may exceed 2^63 tokens. Such a day changes the type for good. BIGINT is the default, since a HUGEINT column
-- is read far more slowly.
ALTER TABLE usage_daily ALTER prompt_tokens TYPE HUGEINT;
ALTER TABLE usage_daily ALTER completion_tokens TYPE HUGEINT;
ALTER TABLE usage_by_model ALTER prompt_tokens TYPE HUGEINT;
ALTER TABLE usage_by_model ALTER completion_tokens TYPE HUGEINT;
ALTER TABLE usage_by_model ALTER reasoning_tokens TYPE HUGEINT;
ALTER TABLE usage_by_model ALTER cached_tokens TYPE HUGEINT;
