/** The parameters of the lists, `/` and `/models`, and of their files (CONTRACT 4.6): the API's, and a few for people. */
import { z } from 'zod'
import {
  CATEGORIES,
  SUBCATEGORIES,
  type Category,
  type Subcategory,
} from '../../pipeline/contract/taxonomy.ts'
import { contradictions, PARAMETERS, resolveQuery, type RankingsQuery } from '../datasets/rankings.ts'
import { baselineOf, DEFAULT_WINDOW_DAYS, windowUpTo, type DateWindow } from '../datasets/window.ts'
import type { SnapshotFacts } from '../datasets/snapshots/facts.ts'
import {
  badRequest,
  invalid,
  oneOf,
  readParameters,
  type ParameterTable,
  type Values,
} from '../http/protocol/query-parameters.ts'

/** What a list ranks. */
export type Subject = 'apps' | 'models'

/** Windows that move with the data, in days. */
export const WINDOWS = [1, 7, 30, 90, 365] as const

/** Series that the chart draws in colours of their own. */
export const DRAWN = 7

const DAYS = {
  schema: z.enum(WINDOWS.map(String)).transform(Number),
  allowed: `one of ${WINDOWS.join(', ')}, instead of start_date`,
}
const NONE = 'none'
const drawn = (item: string) => ({
  schema: z.string().regex(new RegExp(`^(?:${NONE}|${item}(?:,${item}){0,${DRAWN - 1}})$`)),
  allowed: `up to ${DRAWN} of the list, separated by commas, or ${NONE}`,
})

const { start_date, end_date, limit, offset, as_of } = PARAMETERS
const SHARED = {
  start_date,
  end_date,
  limit,
  offset,
  as_of,
  days: DAYS,
  by: oneOf(['tokens', 'requests']),
  chart: oneOf(['stacked', 'lines']),
} as const

const TABLES = {
  apps: {
    ...SHARED,
    sort: PARAMETERS.sort,
    // One field of a form has both, so that it works without a script.
    category: oneOf([...CATEGORIES, ...SUBCATEGORIES]),
    subcategory: PARAMETERS.subcategory,
    apps: drawn(String.raw`\d{1,19}`),
  },
  models: { ...SHARED, models: drawn('[^,]{1,200}') },
} as const satisfies Readonly<Record<Subject, ParameterTable>>

const SERIES = { schema: z.literal('1'), allowed: '1' }

/** The parameters as sent, of either list. */
export type ListParameters = Omit<Values<typeof TABLES.apps & typeof TABLES.models>, 'category'> & {
  readonly category?: Category
  readonly series?: '1'
}

export interface ListRequest {
  readonly subject: Subject
  readonly parameters: ListParameters
}

/**
 * Reads the query string of a list; empty values are what forms send for fields that are not filled in.
 * @throws {ApiError} 400 that lists every fault.
 */
export function parseList(subject: Subject, query: string, { isJson = false } = {}): ListRequest {
  const filled = new URLSearchParams([...new URLSearchParams(query)].filter(([, value]) => value !== ''))
  const table = isJson ? { ...TABLES[subject], series: SERIES } : TABLES[subject]
  const { values, faults } = readParameters(table, filled.toString())
  const parameters = splitCategory(values)
  faults.push(...contradictions(parameters))
  const { days, by, sort } = parameters
  if (days !== undefined && parameters.start_date !== undefined) {
    faults.push(invalid('days', String(days), DAYS.allowed))
  }
  if (by === 'requests' && sort === 'trending') {
    faults.push(invalid('by', by, 'tokens, where sort is trending'))
  }
  if (faults.length > 0) throw badRequest(faults)
  return { subject, parameters }
}

function splitCategory(values: Values<typeof TABLES.apps>): ListParameters {
  const { category, subcategory, ...rest } = values
  const group = CATEGORIES.find((each) => each === category)
  const own: Subcategory | undefined = subcategory ?? SUBCATEGORIES.find((each) => each === category)
  return { ...rest, ...(group && { category: group }), ...(own && { subcategory: own }) }
}

/** A list with every default applied. */
export interface List extends RankingsQuery {
  readonly subject: Subject
  readonly measure: 'tokens' | 'requests'
  /** Length of a window that moves with the data; undefined for one given by dates. */
  readonly days: number | undefined
  /** The drawn apps or models; undefined for the first of the list. */
  readonly drawn: readonly string[] | undefined
}

type Dated = Pick<SnapshotFacts, 'dataThrough' | 'firstDay' | 'daysMissing'>

/**
 * Applies the defaults.
 * @throws {ApiError} 400 if the window would start after its end.
 */
export function resolveList({ subject, parameters }: ListRequest, snapshot: Dated): List {
  const days = daysOfWindow(parameters, snapshot)
  const chosen = parameters[subject]
  return {
    ...resolveQuery({ ...parameters, days }, snapshot.dataThrough),
    subject,
    measure: parameters.by ?? 'tokens',
    days,
    drawn: chosen === NONE ? [] : chosen?.split(','),
  }
}

/** By default 30 days; in trending the longest usual window whose whole baseline has data. */
function daysOfWindow({ days, start_date: start, end_date: end, sort }: ListParameters, snapshot: Dated) {
  if (days !== undefined) return days
  if (start !== undefined || end !== undefined) return undefined
  if (sort !== 'trending') return DEFAULT_WINDOW_DAYS
  const isCovered = (length: number) =>
    missingDays(snapshot, baselineOf(windowUpTo(snapshot.dataThrough, length))).length === 0
  return WINDOWS.findLast(isCovered) ?? WINDOWS[0]
}

/** The days of `window` without delivered usage, including those before the first day of the data. */
export function missingDays(
  { firstDay, daysMissing }: Omit<Dated, 'dataThrough'>,
  window: DateWindow,
): string[] {
  const missing = new Set(daysMissing)
  return eachDay(window).filter((day) => day < firstDay || missing.has(day))
}

/** The days of a window, in order. */
export function eachDay({ start, end }: DateWindow): string[] {
  const first = Date.parse(start)
  const length = 1 + (Date.parse(end) - first) / DAY_MS
  return Array.from({ length }, (_, index) => new Date(first + index * DAY_MS).toISOString().slice(0, 10))
}

const DAY_MS = 86_400_000
