COMMENT ON MACRO snapshot.fast.step IS 'Days from one marked day to the next.';
COMMENT ON MACRO snapshot.fast.data_through IS 'The last day of the data, as in meta.';

-- Of the same type: DuckDB adds a DECIMAL and a HUGEINT as DOUBLE.
CREATE MACRO snapshot.fast.none_of(tokens) AS CASE WHEN true THEN 0 ELSE tokens END;
COMMENT ON MACRO snapshot.fast.none_of IS 'No tokens, in the type of those that are given.';

CREATE MACRO snapshot.fast.mark_of(day) AS
  DATE '2024-12-31' + CAST(fast.step() * ((day - DATE '2024-12-31') // fast.step()) AS INTEGER);
COMMENT ON MACRO snapshot.fast.mark_of IS 'The last marked day that is not after a day; marks are step() days apart, counted from the eve of 2025-01-01.';
