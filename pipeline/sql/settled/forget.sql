-- The settled files count for nothing from here on.
DELETE FROM warehouse.kept_files;
DELETE FROM warehouse.kept_days;
DELETE FROM warehouse.kept_apps;
DELETE FROM warehouse.kept_tops;
DELETE FROM warehouse.kept_tags;
