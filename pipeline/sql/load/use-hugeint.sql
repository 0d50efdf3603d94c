-- A day of an app may hold more than 2^63 tokens. Such a day changes the type for good: rare, and exact. BIGINT is the
-- rule, since a HUGEINT column is read a hundred times slower.
ALTER TABLE usage_daily ALTER prompt_tokens TYPE HUGEINT;
ALTER TABLE usage_daily ALTER completion_tokens TYPE HUGEINT;
ALTER TABLE usage_by_model ALTER prompt_tokens TYPE HUGEINT;
ALTER TABLE usage_by_model ALTER completion_tokens TYPE HUGEINT;
ALTER TABLE usage_by_model ALTER reasoning_tokens TYPE HUGEINT;
ALTER TABLE usage_by_model ALTER cached_tokens TYPE HUGEINT;
