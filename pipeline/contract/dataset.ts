/** The shapes and the terms of the published data. */
import { z } from 'zod'
import { daySchema, timeSchema } from './calendar.ts'

declare global {
  interface JSON {
    /** Missing in TypeScript's library: a value that is serialized as this text, such as an id or a count beyond 2^53. */
    rawJSON(text: string): unknown
  }
}

/** Label of the dataset's schema; it stays as long as field names and grain do (CONTRACT 4.3). */
export const DATASET_VERSION = 'v1'

/** The two orders of the rankings (CONTRACT 4.2). */
export const SORTS = ['popular', 'trending'] as const
export type Sort = (typeof SORTS)[number]

/** Values of coverage's column status. */
export const COVERAGE_STATUSES = ['complete', 'partial', 'restated', 'missing'] as const

/** app_id of requests that name no app: they are counted but never ranked, and no app may be registered under it. */
export const UNATTRIBUTED_APP_ID = 0

/** Licence of the published data and the address of its text. */
export const LICENCE = { name: 'CC-BY-4.0', url: 'https://creativecommons.org/licenses/by/4.0/' } as const

/** The dataset in a sentence. */
export const SUMMARY =
  'Which apps use large language models, by how much, and which are growing: requests and tokens per UTC day and ' +
  'public app, with popular and trending rankings.'

/** Stated wherever the data is offered (CONTRACT 1). */
export const COMPARABILITY_NOTE =
  "Token counts come from each upstream provider's own tokenizer, so tokens of apps whose traffic flows " +
  'through different providers are not strictly comparable.'

/**
 * Beginnings of texts that spreadsheets read as a formula, as a regular expression: a sign, also in its East Asian width,
 * or a control character, which they may skip. App names come from strangers, so CSV puts an apostrophe before such a text:
 * spreadsheets then show it as text, without the apostrophe.
 */
export const SPREADSHEET_FORMULA = String.raw`^[=+\-@＝＋－＠\x00-\x1f]`

/**
 * Type of a column of published rows: a text, a whole number below 2^63 (a bigint), or a whole number of up to 38 digits
 * (its text).
 */
export type ColumnType = 'text' | 'integer' | 'decimal'

/** Columns by name, in the order of every format. */
export type Columns = Readonly<Record<string, ColumnType>>

const appName = z.string().meta({ examples: ['Example'] })
const integer = z.bigint().meta({ examples: [123] })
const decimal = z
  .string()
  .regex(/^\d+$/)
  .meta({ examples: ['5600000000'] })

/** The columns of a row, for every format. */
function columnsOf({ shape }: z.ZodObject): Columns {
  return Object.fromEntries(Object.entries(shape).map(([name, schema]) => [name, typeOf(schema)]))
}

function typeOf(schema: unknown): ColumnType {
  if (schema instanceof z.ZodBigInt) return 'integer'
  return schema === decimal ? 'decimal' : 'text'
}

/** One row of the rankings in the API (CONTRACT 4.3); strict clients reject further keys. */
export const rankingRowSchema = z.strictObject({
  app_id: integer,
  app_name: appName,
  rank: integer,
  total_requests: integer,
  total_tokens: decimal,
})
export type RankingRow = z.infer<typeof rankingRowSchema>
export const RANKING_COLUMNS = columnsOf(rankingRowSchema)

/** One row of an app's daily series (CONTRACT 4.6), also for days without usage. */
export const seriesRowSchema = z.strictObject({
  day: daySchema,
  app_id: integer,
  app_name: appName,
  requests: integer,
  prompt_tokens: decimal,
  completion_tokens: decimal,
  total_tokens: decimal,
  /** The status in the table coverage: a missing day is not a day without usage. */
  coverage: z.enum(COVERAGE_STATUSES),
})
export type SeriesRow = z.infer<typeof seriesRowSchema>
export const SERIES_COLUMNS = columnsOf(seriesRowSchema)

/** The `model_permaslug` of all usage beyond the ranked models of a day; no model can have this name. */
export const OTHER_MODELS = 'other'

/** One row of the daily model ranking (CONTRACT 4.6); strict clients reject further keys. */
export const modelRowSchema = z.strictObject({
  date: daySchema,
  /** `author/slug`, or OTHER_MODELS. */
  model_permaslug: z.string().meta({ examples: ['acme/large'] }),
  total_tokens: decimal,
})
export const MODEL_COLUMNS = columnsOf(modelRowSchema)

/** The `meta` of a reply with rows (CONTRACT 4.3). */
export const rankingMetaSchema = z.strictObject({
  as_of: timeSchema.meta({ examples: ['2026-11-20T02:00:00Z'] }),
  start_date: daySchema,
  end_date: daySchema,
  version: z.literal(DATASET_VERSION),
})
