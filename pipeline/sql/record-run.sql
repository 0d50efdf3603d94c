-- The history of runs, newest last.
INSERT INTO runs
SELECT CAST($started_at AS TIMESTAMPTZ), CAST($finished_at AS TIMESTAMPTZ), $outcome, $snapshot, CAST($report AS JSON);
