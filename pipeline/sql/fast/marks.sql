COMMENT ON MACRO snapshot.fast.step IS 'Days from one marked day to the next.';
COMMENT ON MACRO snapshot.fast.data_through IS 'The last day of the data, as in meta.';

CREATE MACRO snapshot.fast.mark_of(day) AS
  DATE '2024-12-31' + CAST(fast.step() * ((day - DATE '2024-12-31') // fast.step()) AS INTEGER);
COMMENT ON MACRO snapshot.fast.mark_of IS 'The last marked day that is not after a day; marks are step() days apart, counted from the eve of 2025-01-01.';
