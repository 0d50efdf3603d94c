-- Requests or tokens per day of all apps of a filter.
SELECT
  CAST(d.day AS VARCHAR) AS day,
  CAST(
    sum(
      CASE
        WHEN $measure = 'requests' THEN CAST(d.requests AS HUGEINT)
        ELSE CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT)
      END
    ) AS VARCHAR
  ) AS usage
FROM app_daily AS d
JOIN filtered_apps($category, $subcategory) AS f ON f.app_id = d.app_id
WHERE d.day BETWEEN CAST($start AS DATE) AND CAST($end AS DATE)
GROUP BY d.day;
