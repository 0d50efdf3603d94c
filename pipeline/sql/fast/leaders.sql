-- The leaders of one block. The next app after them bounds all others. DOUBLE compares fastest; raising the bound by a
-- millionth exceeds its rounding.
INSERT INTO leaders
WITH volumes AS (
  SELECT
    d.app_id,
    CAST(sum(d.prompt_tokens) + sum(d.completion_tokens) AS DOUBLE) AS total,
    max(CAST(d.prompt_tokens AS DOUBLE) + CAST(d.completion_tokens AS DOUBLE)) AS peak
  FROM snapshot.app_daily AS d
  WHERE d.day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)
  GROUP BY d.app_id
)
SELECT
  CAST($first_day AS DATE), CAST($last_day AS DATE), s.subcategory,
  max_by(v.app_id, v.total, $level), max_by(v.app_id, v.peak, $level),
  CAST(1.000001 * max(v.total, $level + 1)[$level + 1] AS DECIMAL(38, 0)),
  CAST(1.000001 * max(v.peak, $level + 1)[$level + 1] AS DECIMAL(38, 0))
FROM volumes AS v
JOIN app_subcategories AS s ON s.app_id = v.app_id
GROUP BY s.subcategory;
