-- The request_ids that repeat. First those of which 48 bits of the hash do: sorted, equal ones are neighbours (more
-- bits would make the sorter's keys twice as long). Where there are none, and on most days there are none, the
-- second look costs nothing.
CREATE OR REPLACE TEMP TABLE alike AS
WITH marks AS (
  SELECT id_high(i.request_id) AS high, id_low(i.request_id) AS low
  FROM incoming AS i
  WHERE i.request_id IS NOT NULL
  ORDER BY high, low
),
neighbours AS (
  SELECT m.high, m.low, lag(m.high) OVER () AS high_above, lag(m.low) OVER () AS low_above
  FROM marks AS m
)
SELECT DISTINCT n.high, n.low
FROM neighbours AS n
WHERE n.high = n.high_above AND n.low = n.low_above;

CREATE OR REPLACE TEMP TABLE repeated AS
SELECT i.request_id
FROM incoming AS i
SEMI JOIN alike AS a ON a.high = id_high(i.request_id) AND a.low = id_low(i.request_id)
WHERE i.request_id IS NOT NULL
GROUP BY i.request_id
HAVING count(*) > 1;
