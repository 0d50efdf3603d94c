-- Removes the figures of the days in the list `days`. The bounds let the reader skip the history around them.
DELETE FROM usage_daily
WHERE day BETWEEN list_min(getvariable('days')) AND list_max(getvariable('days'))
  AND list_contains(getvariable('days'), day);
DELETE FROM usage_by_model
WHERE day BETWEEN list_min(getvariable('days')) AND list_max(getvariable('days'))
  AND list_contains(getvariable('days'), day);
DELETE FROM usage_by_provider WHERE list_contains(getvariable('days'), day);
DELETE FROM days WHERE list_contains(getvariable('days'), day);
