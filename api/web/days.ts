import { addDays } from '../../pipeline/contract/calendar.ts'
import type { DateWindow } from '../datasets/rankings/window.ts'

/** The days of a window, in order. */
export function eachDay({ start, end }: DateWindow): string[] {
  const days: string[] = []
  for (let day = start; day <= end; day = addDays(day, 1)) days.push(day)
  return days
}

/** A window in words; a single day is its date. */
export function inWords({ start, end }: DateWindow): string {
  return start === end ? start : `${start} to ${end}`
}
