-- Whether all tokens together may be too many for BIGINT.
SELECT
  coalesce(
    greatest(CAST(sum(d.prompt_tokens) AS HUGEINT), CAST(sum(d.completion_tokens) AS HUGEINT)) > 9223372036854775807,
    false
  ) AS wide
FROM snapshot.app_daily AS d;
