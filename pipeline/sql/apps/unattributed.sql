-- Served chat requests that named no app, by the account that sent them, most tokens first.
SELECT
  account_id,
  CAST(count(*) AS VARCHAR) AS requests,
  CAST(coalesce(sum(prompt_tokens), 0) + coalesce(sum(completion_tokens), 0) AS VARCHAR) AS tokens,
  strftime(min(ts), '%Y-%m-%d') AS first_day,
  strftime(max(ts), '%Y-%m-%d') AS last_day
FROM read_json(
  $files,
  format := 'newline_delimited',
  ignore_errors := true,
  columns := {
    ts: 'TIMESTAMP',
    app_id: 'BIGINT',
    prompt_tokens: 'HUGEINT',
    completion_tokens: 'HUGEINT',
    requests: 'BIGINT',
    account_id: 'VARCHAR'
  }
)
WHERE app_id = $unattributed AND requests > 0
GROUP BY account_id
ORDER BY coalesce(sum(prompt_tokens), 0) + coalesce(sum(completion_tokens), 0) DESC, account_id;
