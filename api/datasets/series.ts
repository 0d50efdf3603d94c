/** The series by day (CONTRACT 4.6): of some apps, app-rankings/daily, and of the models with the most tokens, rankings-daily. */
import { z } from 'zod'
import { addDays } from '../../pipeline/contract/calendar.ts'
import {
  MODEL_COLUMNS,
  modelRowSchema,
  SERIES_COLUMNS,
  seriesRowSchema,
  type SeriesRow,
} from '../../pipeline/contract/dataset.ts'
import {
  asInteger,
  invalidParameter,
  wholeNumber,
  type ParameterTable,
  type Values,
} from '../http/query-parameters.ts'
import { MODEL_RANKING_PATH, SERIES_PATH } from '../paths.ts'
import { PARAMETERS } from './rankings.ts'
import type { RowsOperation } from './reply.ts'
import type { Snapshot } from './snapshots/facts.ts'
import { daysOf, resolveWindow, type DateWindow } from './window.ts'

const MAX_APPS = 10
/** Days of one reply. */
const MAX_DAYS = 366
/** More days than any window has. */
const MAX_OFFSET = 100_000
const MAX_ID = 2n ** 63n - 1n

const idSchema = z
  .string()
  .regex(/^\d{1,19}$/)
  .transform(BigInt)
  .refine((id) => id <= MAX_ID)

const { start_date, end_date, as_of, format } = PARAMETERS

/** Every parameter with its check; limit and offset count days. */
const SERIES_PARAMETERS = {
  app_id: {
    schema: z
      .array(asInteger(idSchema, { minimum: 0 }))
      .min(1)
      .max(MAX_APPS)
      .describe('The apps by `app_id`: repeat the parameter, or separate them by commas.'),
    allowed: `the app_id of a public app, given at most ${MAX_APPS} times`,
    most: MAX_APPS,
    required: true,
  },
  start_date,
  end_date,
  limit: wholeNumber(1, MAX_DAYS, MAX_DAYS, 'Days of the page.'),
  offset: wholeNumber(0, MAX_OFFSET, 0, 'Days of the window to skip.'),
  as_of,
  format,
} as const satisfies ParameterTable

export const SERIES = {
  path: SERIES_PATH,
  parameters: SERIES_PARAMETERS,
  columns: SERIES_COLUMNS,
  resolve(given, { dataThrough }) {
    const sent: Values<typeof SERIES_PARAMETERS> = given
    const { limit = SERIES_PARAMETERS.limit.default, offset = SERIES_PARAMETERS.offset.default } = sent
    const { start, end } = resolveWindow(sent, dataThrough)
    const total = daysOf({ start, end })
    const last = addDays(start, Math.min(offset + limit, total) - 1)
    const page = { start: addDays(start, offset), end: last }
    // The same apps in another order are the same request.
    const apps = [...new Set(sent.app_id)].toSorted((one, other) => (one < other ? -1 : 1))
    return {
      parameters: { app_id: apps.join(','), start_date: start, end_date: end, limit, offset },
      read: async (snapshot) => {
        const { rows, unknown } = await readSeries(snapshot, apps, page)
        if (unknown.length === 0) return { rows, total }
        throw invalidParameter('app_id', unknown.join(', '), SERIES_PARAMETERS.app_id.allowed)
      },
    }
  },
} satisfies RowsOperation

// A row for each day, so that days without usage differ from days without data; one without a day for an empty window.
const DAYS = `
  SELECT
    CAST(c.day AS VARCHAR) AS day, a.app_id, a.app_name, coalesce(d.requests, 0) AS requests,
    CAST(coalesce(d.prompt_tokens, 0) AS VARCHAR) AS prompt_tokens,
    CAST(coalesce(d.completion_tokens, 0) AS VARCHAR) AS completion_tokens,
    CAST(coalesce(CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT), 0) AS VARCHAR)
      AS total_tokens,
    c.status AS coverage
  FROM (SELECT * FROM apps WHERE list_contains(TRY_CAST(string_split($apps, ',') AS BIGINT[]), app_id)) AS a
  LEFT JOIN coverage AS c ON c.day BETWEEN CAST($start AS DATE) AND CAST($end AS DATE)
  LEFT JOIN (
    SELECT * FROM app_daily
    WHERE day BETWEEN CAST($start AS DATE) AND CAST($end AS DATE)
      AND list_contains(TRY_CAST(string_split($apps, ',') AS BIGINT[]), app_id)
  ) AS d ON d.day = c.day AND d.app_id = a.app_id
  ORDER BY c.day, a.app_id`

const daysSchema = z.array(seriesRowSchema)

/** The rows of each day of the window, by day and app, and the ids without a public app. */
export async function readSeries(
  { query }: Snapshot,
  ids: readonly bigint[],
  { start, end }: DateWindow,
): Promise<{ readonly rows: readonly SeriesRow[]; readonly unknown: readonly bigint[] }> {
  const days = await query(DAYS, { apps: ids.join(','), start, end })
  const known = new Set(days.map(({ app_id }) => app_id))
  const rows = daysSchema.parse(days.filter(({ day }) => day !== null))
  return { rows, unknown: ids.filter((id) => !known.has(id)) }
}

// The order of the macro is that of the rule.
const MODEL_DAYS = `
  SELECT CAST(date AS VARCHAR) AS date, model_permaslug, CAST(total_tokens AS VARCHAR) AS total_tokens
  FROM daily_models($start, $end)`

const modelDaysSchema = z.array(modelRowSchema)

/** A day has few rows, so there are no pages. */
export const MODELS = {
  path: MODEL_RANKING_PATH,
  parameters: { start_date, end_date, as_of, format },
  columns: MODEL_COLUMNS,
  resolve(given, { dataThrough }) {
    const { start, end } = resolveWindow(given, dataThrough)
    const read = async ({ query }: Snapshot) => {
      return { rows: modelDaysSchema.parse(await query(MODEL_DAYS, { start, end })) }
    }
    return { parameters: { start_date: start, end_date: end }, read }
  },
} satisfies RowsOperation
