/**
 * Which raw row is valid, and which row of a repeated request_id counts: stated once, in SQL for both DuckDB and
 * ClickHouse. It applies to rows of files, footers of Parquet files, and the cluster.
 */
import type { DuckDBConnection } from '@duckdb/node-api'

/** The expressions for the values of a row; NULL if a value is missing, -1 if a count is broken. */
type UsageValues = Readonly<Record<'app_id' | 'prompt_tokens' | 'completion_tokens' | 'requests', string>>

/** The descriptive values: NULL if missing or broken. */
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
 * The pattern of a model, `author/slug`, with an optional variant after a colon. Variants count for their model, the first
 * group; any other text is unknown. Without backslashes, which the two dialects read differently.
 */
const MODEL_NAME = (() => {
  const [letters, space] = ['[A-Za-z0-9_.+@~-]', '[[:space:]]*']
  const part = `[A-Za-z0-9]${letters}{0,99}`
  return `^${space}(${part}/${part})(:${letters}+)?${space}$`
})()

/**
 * The branches of a CASE that gives the violation of a row (CONTRACT 7). Requests may be unknown (they count as one), and
 * so may both token counts; a single unknown token count is a violation.
 */
function violationBranches({ app_id, prompt_tokens, completion_tokens, requests }: UsageValues): string {
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
 * Precedence among rows with one request_id: the row with the largest values counts, compared in this order, time first.
 * Unknown tokens rank below 0.
 */
function precedence(times: readonly string[], values: UsageValues & DescriptiveValues): readonly string[] {
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

/** Defines the rules as macros of the connection: `violation` (NULL for a valid row), `precedence` and `model_from_text`. */
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
