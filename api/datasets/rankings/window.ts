import { addDays, daysBetween, FLOOR_DATE } from '../../../pipeline/contract/calendar.ts'

/** Days of the default window, both ends included (CONTRACT 4.1). */
export const DEFAULT_WINDOW_DAYS = 30

/** A date window, both days included, `YYYY-MM-DD` in UTC. */
export interface DateWindow {
  readonly start: string
  readonly end: string
}

/**
 * Resolves what was asked to the window that is answered (CONTRACT 4.1): the end is clamped back to
 * `dataThrough`, the last completed day of the data, and the start forward to the floor. The start may come
 * out after the end; the caller refuses that.
 */
export function resolveWindow(
  asked: { readonly start_date?: string; readonly end_date?: string },
  dataThrough: string,
): DateWindow {
  const end = earlier(asked.end_date ?? dataThrough, dataThrough)
  const start = asked.start_date ?? windowUpTo(end, DEFAULT_WINDOW_DAYS).start
  return { start: start < FLOOR_DATE ? FLOOR_DATE : start, end }
}

/** The window of so many days that ends with this one. */
export function windowUpTo(end: string, days: number): DateWindow {
  return { start: addDays(end, 1 - days), end }
}

/** How many days a window has. */
export function daysOf({ start, end }: DateWindow): number {
  return 1 + daysBetween(start, end)
}

/** The window of equal length just before. */
export function windowBefore(window: DateWindow): DateWindow {
  return { start: addDays(window.start, -daysOf(window)), end: addDays(window.start, -1) }
}

/** What growth is measured against: the three windows of equal length just before (CONTRACT 4.2). */
export function baselineOf(window: DateWindow): DateWindow {
  return { start: addDays(window.start, -3 * daysOf(window)), end: addDays(window.start, -1) }
}

// Days in this form sort as text.
function earlier(day: string, other: string): string {
  return day < other ? day : other
}
