-- A lease says whether a job still runs.
ALTER TABLE scim_sync_jobs DROP COLUMN runner;
