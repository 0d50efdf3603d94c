/** The parameters of the page: the API's, and `days` for a window that moves with the data. */
import { z } from 'zod'
import { baselineOf, DEFAULT_WINDOW_DAYS, windowUpTo } from '../../datasets/rankings/window.ts'
import { contradictions, PARAMETERS, type Parameters } from '../../datasets/rankings/parameters.ts'
import { resolveQuery } from '../../datasets/rankings/query.ts'
import {
  badRequest,
  invalid,
  oneOf,
  readParameters,
  type ParameterTable,
  type Values,
} from '../../http/protocol/query-parameters.ts'
import type { SnapshotFacts } from '../../datasets/snapshots/open-snapshot.ts'
import { missingDays } from './gaps.ts'
import { MEASURES, type Measure, type PageRanking } from './page-data.ts'

type Dated = Pick<SnapshotFacts, 'dataThrough' | 'firstDay' | 'daysMissing'>

/** Windows of the page, in days. */
export const WINDOWS = [1, 7, 30, 90, 365] as const

/** A window in days, which moves with the data. */
export const DAYS = {
  schema: z.enum(WINDOWS.map(String)).transform(Number),
  allowed: `one of ${WINDOWS.join(', ')}, instead of start_date`,
}

export interface PageParameters {
  readonly parameters: Parameters
  /** Set if the window is given in days. */
  readonly days: number | undefined
  /** The measure that orders popular apps; trending is ordered by tokens. */
  readonly by: Measure | undefined
}

const { format: _inLinksOnly, bom: _inFilesOnly, ...SHARED } = PARAMETERS

const PAGE_PARAMETERS = {
  ...SHARED,
  days: DAYS,
  by: oneOf(MEASURES),
} as const satisfies ParameterTable

/**
 * Reads the query string of the page.
 * @throws {ApiError} 400 that lists every fault.
 */
export function parsePageParameters(query: string): PageParameters {
  // Forms send every field, even empty ones.
  const filled = new URLSearchParams([...new URLSearchParams(query)].filter(([, value]) => value !== ''))
  const { values, faults } = readParameters(PAGE_PARAMETERS, filled.toString())
  const { days, by, ...parameters }: Values<typeof PAGE_PARAMETERS> = values
  faults.push(...contradictions(parameters))
  if (days !== undefined && parameters.start_date !== undefined) {
    faults.push(invalid('days', String(days), DAYS.allowed))
  }
  if (by === 'requests' && parameters.sort === 'trending') {
    faults.push(invalid('by', by, 'tokens, where sort is trending'))
  }
  if (faults.length > 0) throw badRequest(faults)
  return { parameters, days, by }
}

/**
 * The length of a moving window; undefined for one given by dates. By default 30 days; in trending the longest usual
 * window with data on every day of its baseline.
 */
export function daysOfWindow({ parameters, days }: PageParameters, snapshot: Dated): number | undefined {
  if (days !== undefined) return days
  if (parameters.start_date !== undefined || parameters.end_date !== undefined) return undefined
  if (parameters.sort !== 'trending') return DEFAULT_WINDOW_DAYS
  const isCovered = (length: number) =>
    missingDays(snapshot, baselineOf(windowUpTo(snapshot.dataThrough, length))).size === 0
  return WINDOWS.findLast(isCovered) ?? WINDOWS[0]
}

/**
 * The parameters with every default applied.
 * @throws {ApiError} 400 if the window would start after its end.
 */
export function resolvePage(asked: PageParameters, snapshot: Dated): PageRanking {
  return {
    ...resolveQuery({ ...asked.parameters, days: daysOfWindow(asked, snapshot) }, snapshot.dataThrough),
    measure: asked.by ?? MEASURES[0],
  }
}
