/** A usage record of chat as a row of the table in data/clickhouse.sql. */
import { z } from 'zod'

/**
 * The table's texts are not nullable, so an unknown text is empty. Its time is in whole seconds. Other keys of a record stay
 * in its file.
 */
const usageRow = z.object({
  ts: z.iso.datetime().transform((time) => time.slice(0, 19).replace('T', ' ')),
  app_id: z.int(),
  prompt_tokens: z.int().nullable(),
  completion_tokens: z.int().nullable(),
  requests: z.int(),
  request_id: z.string(),
  model: z.string().nullable().transform(orEmpty),
  provider: z.string().nullable().transform(orEmpty),
  account_id: z.string(),
  // Records of older versions lack these.
  reasoning_tokens: z.int().nullable().default(null),
  cached_tokens: z.int().nullable().default(null),
})
export type UsageRow = z.infer<typeof usageRow>

/** Columns that tables of older versions lack. */
const PARTS = ['reasoning_tokens', 'cached_tokens'] as const

const USUAL = usageRow.omit({ ts: true, reasoning_tokens: true, cached_tokens: true }).keyof().options

/** The columns of usage records in a table with the columns `found`. */
export function filledColumns(found: readonly string[]): readonly [string, ...string[]] {
  return ['ts', ...USUAL, ...PARTS.filter((part) => found.includes(part))]
}

/** The row of a record's line; undefined if the line is not a record, such as half a line. */
export function usageRowOf(line: string): UsageRow | undefined {
  try {
    return usageRow.safeParse(JSON.parse(line)).data
  } catch {
    return undefined
  }
}

function orEmpty(text: string | null): string {
  return text ?? ''
}
