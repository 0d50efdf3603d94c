/** Windows of days (CONTRACT 4.1). */
import { addDays, daysBetween, daySchema, FLOOR_DATE } from '../../pipeline/contract/calendar.ts'
import { invalidParameter } from '../http/query-parameters.ts'
import type { SnapshotFacts } from './snapshots/facts.ts'

/** Days of the default window, both ends included. */
const DEFAULT_WINDOW_DAYS = 30

const LATEST_DAY = 'the last completed day of the dataset'

/** The parameters of a window. */
export const WINDOW_PARAMETERS = {
  start_date: {
    schema: daySchema.describe(
      `First day (UTC), inclusive; clamped to ${FLOOR_DATE}. Default: the window is the ${DEFAULT_WINDOW_DAYS} days that end on \`end_date\`.`,
    ),
    allowed: 'a calendar date (UTC) in the form YYYY-MM-DD',
  },
  end_date: {
    schema: daySchema
      .refine((day) => day >= FLOOR_DATE)
      .meta({
        description: `Last day (UTC), inclusive, from ${FLOOR_DATE} on; clamped to ${LATEST_DAY}. Default: ${LATEST_DAY}.`,
        examples: ['2026-11-19'],
        // From 2025 on.
        override: { pattern: String.raw`^(202[5-9]|20[3-9]\d|2[1-9]\d\d|[3-9]\d{3})-\d\d-\d\d$` },
      }),
    allowed: `a calendar date (UTC) in the form YYYY-MM-DD, on or after ${FLOOR_DATE}`,
  },
} as const

/** A date window, both days included, `YYYY-MM-DD` in UTC. */
export type DateWindow = { readonly start_date: string; readonly end_date: string }

/** The requested window: its days, or their number up to the end. */
type RequestedWindow = Partial<DateWindow> & { readonly days?: number }

/**
 * Resolves the requested window: the end is clamped back to the last completed day of the data, and the start forward to
 * the floor. The macros of a snapshot do the same (pipeline/sql/macros.sql), but a 304 and a HEAD must not cost a
 * query.
 * @throws ApiError 400 if the window would start after its end.
 */
export function resolveWindow(
  { days = DEFAULT_WINDOW_DAYS, ...given }: RequestedWindow,
  { data_through }: SnapshotFacts,
): DateWindow {
  const end_date = earlier(given.end_date ?? data_through, data_through)
  const start_date = later(given.start_date ?? windowUpTo(end_date, days).start_date, FLOOR_DATE)
  if (start_date <= end_date) return { start_date, end_date }
  throw invalidParameter('start_date', start_date, `a date not after the end, ${end_date}`)
}

// Days in this form sort as text.
export const earlier = (one: string, other: string) => (one < other ? one : other)
export const later = (one: string, other: string) => (one > other ? one : other)

/** The window of this many days with this end. */
export function windowUpTo(end_date: string, days: number): DateWindow {
  return { start_date: addDays(end_date, 1 - days), end_date }
}

/** Number of days of a window. */
export function daysOf({ start_date, end_date }: DateWindow): number {
  return 1 + daysBetween(start_date, end_date)
}

/** The preceding windows of equal length together; three are the baseline of growth (CONTRACT 4.2). */
export function windowsBefore(window: DateWindow, count: number): DateWindow {
  return windowUpTo(addDays(window.start_date, -1), count * daysOf(window))
}
