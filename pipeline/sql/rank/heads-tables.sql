-- The snapshot cut down to the apps that may stand in a list, in memory: asked there, the macros give the same
-- lists in a fraction of the time.
CREATE OR REPLACE TABLE heads.categories AS SELECT * FROM snapshot.categories;
CREATE OR REPLACE TABLE heads.apps AS
SELECT a.* FROM snapshot.apps AS a SEMI JOIN head_apps AS h ON h.app_id = a.app_id;
CREATE OR REPLACE TABLE heads.app_daily AS
SELECT d.* FROM snapshot.app_daily AS d SEMI JOIN head_apps AS h ON h.app_id = d.app_id;
