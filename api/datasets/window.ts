/** Windows of days (CONTRACT 4.1). */
import { addDays, daysBetween, FLOOR_DATE } from '../../pipeline/contract/calendar.ts'
import { invalidParameter } from '../http/query-parameters.ts'

/** Days of the default window, both ends included. */
export const DEFAULT_WINDOW_DAYS = 30

/** A date window, both days included, `YYYY-MM-DD` in UTC. */
export type DateWindow = {
  readonly start: string
  readonly end: string
}

/** The requested window: its days, or their number up to the end. */
type RequestedWindow = {
  readonly start_date?: string | undefined
  readonly end_date?: string | undefined
  readonly days?: number | undefined
}

/**
 * Resolves the requested window: the end is clamped back to `dataThrough`, the last completed day, and the start forward
 * to the floor. The macros of a snapshot do the same (pipeline/sql/macros.sql), but a 304 and a HEAD must not cost a
 * query.
 * @throws ApiError 400 if the window would start after its end.
 */
export function resolveWindow(
  { start_date, end_date, days = DEFAULT_WINDOW_DAYS }: RequestedWindow,
  dataThrough: string,
): DateWindow {
  // Days in this form sort as text.
  const end = end_date === undefined || end_date > dataThrough ? dataThrough : end_date
  const wanted = start_date ?? windowUpTo(end, days).start
  const start = wanted < FLOOR_DATE ? FLOOR_DATE : wanted
  if (start > end) throw invalidParameter('start_date', start, `a date not after the end, ${end}`)
  return { start, end }
}

/** The window of this many days with this end. */
export function windowUpTo(end: string, days: number): DateWindow {
  return { start: addDays(end, 1 - days), end }
}

/** Number of days of a window. */
export function daysOf({ start, end }: DateWindow): number {
  return 1 + daysBetween(start, end)
}

/** The preceding windows of equal length together; three are the baseline of growth (CONTRACT 4.2). */
export function windowsBefore(window: DateWindow, count: number): DateWindow {
  return { start: addDays(window.start, -count * daysOf(window)), end: addDays(window.start, -1) }
}
