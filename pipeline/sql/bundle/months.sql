-- The months from the first day of the data to the last, each with its days, and a text that tells its rows from others.
WITH months AS (
  SELECT
    strftime(t.first_day, '%Y-%m') AS month,
    CAST(t.first_day AS DATE) AS first_day,
    last_day(t.first_day) AS last_day
  FROM snapshot.meta AS m, generate_series(date_trunc('month', m.first_day), m.data_through, INTERVAL 1 MONTH) AS t (first_day)
),
contents AS (
  SELECT
    date_trunc('month', d.day) AS first_day,
    count(*) AS rows,
    bit_xor(hash(d.day, d.app_id, d.requests, d.prompt_tokens, d.completion_tokens)) AS parity,
    sum(hash(d.day, d.app_id, d.requests, d.prompt_tokens, d.completion_tokens)) AS total
  FROM snapshot.app_daily AS d
  GROUP BY ALL
)
SELECT
  m.month,
  CAST(m.first_day AS VARCHAR) AS first_day,
  CAST(m.last_day AS VARCHAR) AS last_day,
  coalesce(c.rows, 0) AS rows,
  concat_ws('-', coalesce(c.rows, 0), c.parity, c.total) AS content
FROM months AS m
LEFT JOIN contents AS c ON c.first_day = m.first_day
ORDER BY m.month;
