/** The series by day (CONTRACT 4.6): of some apps, app-rankings/daily, and of the models with the most tokens, rankings-daily. */
import { z } from 'zod'
import { addDays } from '../../pipeline/contract/calendar.ts'
import {
  MODEL_COLUMNS,
  modelRowSchema,
  SERIES_COLUMNS,
  seriesRowSchema,
} from '../../pipeline/contract/dataset.ts'
import {
  asInteger,
  invalidParameter,
  wholeNumber,
  type ParameterTable,
  type Values,
} from '../http/query-parameters.ts'
import { MODEL_RANKING_PATH, SERIES_PATH } from '../paths.ts'
import { REPLY_PARAMETERS, type RowsOperation } from './reply.ts'
import type { Snapshot } from './snapshots/facts.ts'
import { daysOf, earlier, resolveWindow, WINDOW_PARAMETERS, type DateWindow } from './window.ts'

const MAX_APPS = 10
/** Days of one reply. */
const MAX_DAYS = 366
/** More days than any window has. */
const MAX_OFFSET = 100_000

const idSchema = z
  .string()
  .regex(/^\d{1,19}$/)
  .transform(BigInt)
  .pipe(z.int64())

/** Every parameter with its check; limit and offset count days. */
const SERIES_PARAMETERS = {
  app_id: {
    schema: z
      .array(asInteger(idSchema, { minimum: 0 }))
      .min(1)
      .max(MAX_APPS)
      .describe('The apps by `app_id`: repeat the parameter, or separate them by commas.'),
    allowed: `the app_id of a public app, given at most ${MAX_APPS} times`,
    isList: true,
  },
  ...WINDOW_PARAMETERS,
  limit: wholeNumber(1, MAX_DAYS, MAX_DAYS, 'Days of the page.'),
  offset: wholeNumber(0, MAX_OFFSET, 0, 'Days of the window to skip.'),
  ...REPLY_PARAMETERS,
} as const satisfies ParameterTable

type SeriesQuery = DateWindow & { readonly app_id: string; readonly limit: number; readonly offset: number }

export const SERIES = {
  path: SERIES_PATH,
  parameters: SERIES_PARAMETERS,
  columns: SERIES_COLUMNS,
  resolve(given: Values<typeof SERIES_PARAMETERS>, snapshot) {
    const { limit = SERIES_PARAMETERS.limit.default, offset = SERIES_PARAMETERS.offset.default } = given
    // The same apps in another order are the same request.
    const apps = [...new Set(given.app_id)].toSorted((one, other) => (one < other ? -1 : 1))
    return { app_id: apps.join(','), ...resolveWindow(given, snapshot), limit, offset }
  },
  async read(snapshot, { app_id, limit, offset, ...window }) {
    const start_date = addDays(window.start_date, offset)
    const end_date = earlier(addDays(start_date, limit - 1), window.end_date)
    const { rows, unknown } = await readSeries(snapshot, app_id, { start_date, end_date })
    if (unknown.length === 0) return { rows, total: daysOf(window) }
    throw invalidParameter('app_id', unknown.join(', '), SERIES_PARAMETERS.app_id.allowed)
  },
} satisfies RowsOperation<SeriesQuery>

// A row for each day, so that days without usage differ from days without data; one without a day for an empty window.
const DAYS = `
  SELECT
    CAST(c.day AS VARCHAR) AS day, a.app_id, a.app_name, coalesce(d.requests, 0) AS requests,
    CAST(coalesce(d.prompt_tokens, 0) AS VARCHAR) AS prompt_tokens,
    CAST(coalesce(d.completion_tokens, 0) AS VARCHAR) AS completion_tokens,
    CAST(coalesce(CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT), 0) AS VARCHAR)
      AS total_tokens,
    c.status AS coverage
  FROM (SELECT * FROM apps WHERE list_contains(TRY_CAST(string_split($ids, ',') AS BIGINT[]), app_id)) AS a
  LEFT JOIN coverage AS c ON c.day BETWEEN CAST($start_date AS DATE) AND CAST($end_date AS DATE)
  LEFT JOIN (
    SELECT * FROM app_daily
    WHERE day BETWEEN CAST($start_date AS DATE) AND CAST($end_date AS DATE)
      AND list_contains(TRY_CAST(string_split($ids, ',') AS BIGINT[]), app_id)
  ) AS d ON d.day = c.day AND d.app_id = a.app_id
  ORDER BY c.day, a.app_id`

const daysSchema = z.array(seriesRowSchema)

/**
 * The rows of each day of the window, by day and app, and the ids without a public app.
 * @param ids separated by commas.
 */
export async function readSeries({ query }: Snapshot, ids: string, window: DateWindow) {
  const days = await query(DAYS, { ids, ...window })
  const known = new Set(days.map(({ app_id }) => String(app_id)))
  const rows = daysSchema.parse(days.filter(({ day }) => day !== null))
  return { rows, unknown: ids.split(',').filter((id) => !known.has(id)) }
}

// The order of the macro is that of the rule.
const MODEL_DAYS = `
  SELECT CAST(date AS VARCHAR) AS date, model_permaslug, CAST(total_tokens AS VARCHAR) AS total_tokens
  FROM daily_models($start_date, $end_date)`

const modelDaysSchema = z.array(modelRowSchema)

/** A day has few rows, so there are no pages. */
export const MODELS = {
  path: MODEL_RANKING_PATH,
  parameters: { ...WINDOW_PARAMETERS, ...REPLY_PARAMETERS },
  columns: MODEL_COLUMNS,
  resolve: resolveWindow,
  read: async ({ query }, window) => ({ rows: modelDaysSchema.parse(await query(MODEL_DAYS, window)) }),
} satisfies RowsOperation<DateWindow>
