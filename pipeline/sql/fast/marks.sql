CREATE MACRO snapshot.fast.mark_of(day) AS
  DATE '2024-12-31' + CAST(fast.step() * ((day - DATE '2024-12-31') // fast.step()) AS INTEGER);
COMMENT ON MACRO snapshot.fast.mark_of IS 'The last marked day that is not after a day; marks are step() days apart, counted from the eve of 2025-01-01.';
