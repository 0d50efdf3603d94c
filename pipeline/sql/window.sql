COMMENT ON MACRO data_through IS 'Last day of the data, as in meta.';

-- The window between two dates, DATE or YYYY-MM-DD (CONTRACT 4.1).

CREATE MACRO window_end(start_date, end_date) AS CASE
  WHEN start_date IS NULL OR end_date IS NULL THEN error('start_date and end_date are both needed, as DATE or YYYY-MM-DD')
  WHEN CAST(end_date AS DATE) < DATE '2025-01-01' THEN error(
    'end_date ' || CAST(end_date AS VARCHAR) || ' is before 2025-01-01, the first day of the dataset; give a later one'
  )
  WHEN CAST(start_date AS DATE) > CAST(end_date AS DATE) THEN error(
    'start_date ' || CAST(start_date AS VARCHAR) || ' is after end_date ' || CAST(end_date AS VARCHAR)
    || '; give the earlier day first'
  )
  WHEN CAST(start_date AS DATE) > data_through() THEN error(
    'start_date ' || CAST(start_date AS VARCHAR) || ' is after ' || CAST(data_through() AS VARCHAR)
    || ', the last day of the data; give an earlier one'
  )
  ELSE least(CAST(end_date AS DATE), data_through())
END;
COMMENT ON MACRO window_end IS 'Last day of the window that popular and trending rank: end_date, clamped back to data_through. Dates that leave no day of the dataset are an error.';

CREATE MACRO window_start(start_date, end_date) AS CASE
  WHEN window_end(start_date, end_date) IS NOT NULL THEN greatest(CAST(start_date AS DATE), DATE '2025-01-01')
END;
COMMENT ON MACRO window_start IS 'First day of that window: start_date, clamped forward to 2025-01-01.';

CREATE MACRO usage_between(first_day, last_day) AS TABLE
SELECT d.app_id, d.requests, d.prompt_tokens, d.completion_tokens
FROM app_daily AS d
WHERE d.day BETWEEN CAST(first_day AS DATE) AND CAST(last_day AS DATE);
COMMENT ON MACRO TABLE usage_between IS 'Usage of the apps from first_day to last_day, both inclusive, in rows that add up to it.';
