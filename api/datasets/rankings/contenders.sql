-- The apps with at least so many tokens in the window, see contenders-setup.sql.
INSERT INTO temp.apps
SELECT a.*
FROM "app-rankings".main.apps AS a
SEMI JOIN (
  SELECT u.app_id
  FROM "app-rankings".main.usage_between($start, $end) AS u
  GROUP BY u.app_id
  HAVING sum(u.prompt_tokens) + sum(u.completion_tokens) >= CAST($least AS HUGEINT)
) AS c ON c.app_id = a.app_id
