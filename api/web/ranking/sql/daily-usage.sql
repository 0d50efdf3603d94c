-- Requests or tokens per day of the page's apps; days without usage have no row.
SELECT
  d.app_id,
  CAST(d.day AS VARCHAR) AS day,
  CAST(
    CASE
      WHEN $measure = 'requests' THEN CAST(d.requests AS HUGEINT)
      ELSE CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT)
    END AS VARCHAR
  ) AS usage
FROM app_daily AS d
WHERE d.day BETWEEN CAST($start AS DATE) AND CAST($end AS DATE)
  AND list_contains(string_split($apps, ','), CAST(d.app_id AS VARCHAR));
