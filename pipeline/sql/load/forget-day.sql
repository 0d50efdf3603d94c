-- A day whose files are gone takes its rows out.
DELETE FROM usage_daily WHERE day = getvariable('day');
DELETE FROM quarantine WHERE day = getvariable('day');
DELETE FROM days WHERE day = getvariable('day');
