-- Where the usage of each app counted in the snapshot before. Where the warehouse does not know (it was made anew, or an
-- earlier version published), its public apps tell: they counted for themselves, and of the others nothing is known.
CREATE OR REPLACE TEMP TABLE earlier_apps AS
SELECT p.app_id, p.canonical_id, p.published
FROM warehouse.published_apps AS p
WHERE p.snapshot = getvariable('previous');

INSERT INTO earlier_apps
SELECT
  coalesce(r.app_id, p.app_id),
  coalesce(p.app_id, r.canonical_id),
  p.app_id IS NOT NULL OR r.canonical_id IN (SELECT a.app_id FROM previous.apps AS a)
FROM warehouse.resolved AS r
FULL JOIN previous.apps AS p ON p.app_id = r.app_id
WHERE NOT EXISTS (FROM warehouse.published_apps AS k WHERE k.snapshot = getvariable('previous'));
