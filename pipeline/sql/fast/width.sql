-- Whether all tokens together are too many for BIGINT.
SELECT coalesce(sum(c.total_tokens) > 9223372036854775807, false) AS wide FROM snapshot.coverage AS c;
