-- Whether BIGINT is too narrow for all the tokens of a head.
SELECT coalesce(max(greatest(t.prompt_tokens, t.completion_tokens)) > 9223372036854775807, false) AS wide
FROM (
  SELECT
    CAST(sum(d.prompt_tokens) AS HUGEINT) AS prompt_tokens,
    CAST(sum(d.completion_tokens) AS HUGEINT) AS completion_tokens
  FROM snapshot.fast.daily AS d
  GROUP BY d.app_id
) AS t;
