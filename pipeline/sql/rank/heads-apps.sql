-- Who they are, and what the filters need.
CREATE OR REPLACE TABLE heads.apps AS
SELECT a.* FROM snapshot.apps AS a SEMI JOIN head_apps AS h ON h.app_id = a.app_id;
CREATE OR REPLACE TABLE heads.categories AS SELECT * FROM snapshot.categories;
