-- The filters of the rankings, in their order, and the apps that each lets through.
CREATE OR REPLACE TEMP TABLE filters (number INTEGER, category VARCHAR, subcategory VARCHAR);
CREATE OR REPLACE TEMP TABLE members (filter INTEGER, app_id BIGINT);
