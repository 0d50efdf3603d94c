/**
 * Which raw row is valid, and which of the rows with one request_id counts: stated once, in SQL that DuckDB and
 * ClickHouse both read. Rows of files, the footers of Parquet files and the cluster go by it.
 */
import type { DuckDBConnection } from '@duckdb/node-api'

/** The expressions that give the values of a row; NULL where a value is missing, -1 where a count is broken. */
type UsageValues = Readonly<Record<'app_id' | 'prompt_tokens' | 'completion_tokens' | 'requests', string>>

/** Those that decide nothing about the row: NULL where a value is missing or broken. */
type DescriptiveValues = Readonly<Record<'model' | 'reasoning_tokens' | 'cached_tokens', string>>

const COLUMN_NAMES: UsageValues & DescriptiveValues = {
  app_id: 'app_id',
  prompt_tokens: 'prompt_tokens',
  completion_tokens: 'completion_tokens',
  requests: 'requests',
  model: 'model',
  reasoning_tokens: 'reasoning_tokens',
  cached_tokens: 'cached_tokens',
}

/**
 * How a model is named, `author/slug`, and its variant behind a colon: the variants of a model are one, and any other text
 * names none. The first group is the model. Without backslashes, which the two dialects read differently.
 */
export const MODEL_NAME = (() => {
  const [letters, space] = ['[A-Za-z0-9_.+@~-]', '[[:space:]]*']
  const part = `[A-Za-z0-9]${letters}{0,99}`
  return `^${space}(${part}/${part})(:${letters}+)?${space}$`
})()

/**
 * The branches of a CASE that give the violation of a row (CONTRACT 7). Requests and their tokens may both be unknown;
 * one of the two token counts alone may not. Unknown requests are one.
 */
export function violationBranches({
  app_id,
  prompt_tokens,
  completion_tokens,
  requests,
}: UsageValues): string {
  return `
    WHEN ${app_id} IS NULL THEN 'app_id is not an integer'
    WHEN ifNull(${prompt_tokens} < 0, ${completion_tokens} IS NOT NULL)
      THEN 'prompt_tokens is not an integer, 0 or more'
    WHEN ifNull(${completion_tokens} < 0, ${prompt_tokens} IS NOT NULL)
      THEN 'completion_tokens is not an integer, 0 or more'
    WHEN ifNull(${requests}, 1) < 0 OR ifNull(${requests}, 1) > 1000000000000
      THEN 'requests is not an integer from 0 to 10^12'`
}

/**
 * What decides which of the rows with one request_id counts: the row whose values are the largest, compared in this order,
 * the time first. Unknown tokens come before 0.
 */
export function precedence(
  times: readonly string[],
  values: UsageValues & DescriptiveValues,
): readonly string[] {
  const { app_id, prompt_tokens, completion_tokens, requests } = values
  return [
    ...times,
    app_id,
    `${prompt_tokens} IS NOT NULL`,
    `ifNull(${prompt_tokens}, 0)`,
    `ifNull(${completion_tokens}, 0)`,
    `ifNull(${requests}, 1)`,
    `ifNull(${values.model}, '')`,
    `ifNull(${values.reasoning_tokens}, 0)`,
    `ifNull(${values.cached_tokens}, 0)`,
  ]
}

/** Defines the rules as macros of the connection: `violation`, NULL for a valid row, `precedence` and `model_from_text`. */
export async function defineValidation(connection: DuckDBConnection): Promise<void> {
  await connection.run(`
    CREATE OR REPLACE TEMP MACRO violation(day, fault, ts, app_id, prompt_tokens, completion_tokens, requests) AS CASE
      WHEN fault IS NOT NULL THEN fault
      WHEN ts IS NULL THEN 'ts is not a UTC timestamp such as 2026-01-05T10:00:00Z'
      WHEN ts < day OR ts >= day + 1 THEN 'ts is not on the day of its folder'
      ${violationBranches(COLUMN_NAMES)}
    END;
    CREATE OR REPLACE TEMP MACRO precedence(
      ts, below_microsecond, app_id, prompt_tokens, completion_tokens, requests, model, reasoning_tokens, cached_tokens
    ) AS
      row(${precedence(['ts', 'below_microsecond'], COLUMN_NAMES).join(', ')});
    CREATE OR REPLACE TEMP MACRO model_from_text(t) AS nullif(regexp_extract(t, '${MODEL_NAME}', 1), '')`)
}
