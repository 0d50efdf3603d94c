-- In which columns the staged rows name their app.
SELECT count(s.app_id) > 0 AS has_id, count(s.app) > 0 AS has_app
FROM staged AS s;
