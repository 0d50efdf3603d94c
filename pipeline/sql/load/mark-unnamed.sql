-- In a file that names apps, a row without a name and without an id names no app; its text is empty then.
UPDATE staged
SET app = ''
WHERE app IS NULL AND app_id IS NULL AND fault IS NULL
  AND file IN (SELECT s.file FROM staged AS s WHERE s.app IS NOT NULL);
