/** GET /datasets/app-rankings/daily (CONTRACT 4.6): the usage of some apps by day. */
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SERIES_COLUMNS } from '../../../pipeline/contract/dataset.ts'
import { SERIES_PATH } from '../../paths.ts'
import { daysOf, resolveWindow, type DateWindow } from '../rankings/window.ts'
import type { Question, RowsRequest } from '../rows/question.ts'
import { parseSeriesParameters, SERIES_PARAMETERS } from './parameters.ts'
import { readSeries } from './read-series.ts'

/**
 * Reads the query string of a request for a series.
 * @throws {ApiError} 400 that lists every fault.
 */
export function parseSeries(text: string): RowsRequest {
  const { app_id: asked, ...parameters } = parseSeriesParameters(text)
  const { limit = SERIES_PARAMETERS.limit.default, offset = SERIES_PARAMETERS.offset.default } = parameters
  // The same apps in another order are the same question.
  const apps = [...new Set(asked)].toSorted((one, other) => (one < other ? -1 : 1))
  return {
    asOf: parameters.as_of,
    format: parameters.format,
    hasMark: parameters.bom !== undefined,
    resolve: ({ dataThrough }) =>
      seriesQuestion({ apps, limit, offset }, resolveWindow(parameters, dataThrough)),
  }
}

interface SeriesPage {
  readonly apps: readonly bigint[]
  /** Days of the page. */
  readonly limit: number
  /** Days of the window before it. */
  readonly offset: number
}

function seriesQuestion({ apps, limit, offset }: SeriesPage, window: DateWindow): Question {
  const total = daysOf(window)
  const last = addDays(window.start, Math.min(offset + limit, total) - 1)
  return {
    path: SERIES_PATH,
    key: ['daily', apps.join('+'), window.start, window.end, limit, offset].join('.'),
    parameters: [
      ...apps.map((id) => ['app_id', String(id)] as const),
      ['start_date', window.start],
      ['end_date', window.end],
      ['limit', String(limit)],
      ['offset', String(offset)],
    ],
    window,
    page: { limit, offset, maxOffset: total },
    columns: SERIES_COLUMNS,
    metadata: { app_ids: apps.join(' ') },
    read: async (snapshot) => ({
      rows: await readSeries(snapshot, apps, { start: addDays(window.start, offset), end: last }),
      total,
    }),
  }
}
