-- Whether all tokens together are too many for BIGINT.
SELECT
  coalesce(
    CAST(sum(d.prompt_tokens) AS HUGEINT) + CAST(sum(d.completion_tokens) AS HUGEINT) > 9223372036854775807, false
  ) AS wide
FROM snapshot.app_daily AS d;
