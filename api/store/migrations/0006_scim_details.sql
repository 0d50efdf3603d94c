-- Directory sync: what one sync may remove, who started a job, and what a directory says of a member.

-- Up to this many groups and members may go, and beyond these no more than so many percent; null is the default.
ALTER TABLE scim_connections ADD COLUMN gate_groups INTEGER;
ALTER TABLE scim_connections ADD COLUMN gate_members INTEGER;
ALTER TABLE scim_connections ADD COLUMN gate_percent INTEGER;

-- 1 for a job that the connection's schedule started.
ALTER TABLE scim_sync_jobs ADD COLUMN scheduled INTEGER NOT NULL DEFAULT 0;

-- active is 0 or 1; null, like email, where the directory says nothing.
ALTER TABLE scim_members ADD COLUMN active INTEGER;
ALTER TABLE scim_members ADD COLUMN email TEXT;
