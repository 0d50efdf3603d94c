-- Directory sync: limits on removals, the origin of jobs, and details of members.

-- This many groups and members may be removed, and beyond them this percentage; null is the default.
ALTER TABLE scim_connections ADD COLUMN gate_groups INTEGER;
ALTER TABLE scim_connections ADD COLUMN gate_members INTEGER;
ALTER TABLE scim_connections ADD COLUMN gate_percent INTEGER;

-- 1 for a job that the connection's schedule started.
ALTER TABLE scim_sync_jobs ADD COLUMN scheduled INTEGER NOT NULL DEFAULT 0;

-- active is 0 or 1; null, like email, if the directory sends no value.
ALTER TABLE scim_members ADD COLUMN active INTEGER;
ALTER TABLE scim_members ADD COLUMN email TEXT;
