/** Days in a row. */
import { addDays } from './calendar.ts'

/** Days from `from` to `to`, both inclusive, `YYYY-MM-DD`. */
export type DayRange = { readonly from: string; readonly to: string }

/** Days in order as ranges, those that follow each other as one. */
export function rangesOf(days: readonly string[]): DayRange[] {
  const ranges: DayRange[] = []
  for (const day of days) {
    const last = ranges.at(-1)
    if (last !== undefined && addDays(last.to, 1) === day) ranges[ranges.length - 1] = { ...last, to: day }
    else ranges.push({ from: day, to: day })
  }
  return ranges
}

/** A range in words; one day is its date alone. */
export function describeRange({ from, to }: DayRange): string {
  return from === to ? from : `${from} to ${to}`
}

/** The days of a range, so many at a time; none where it ends before it begins. */
export function piecesOf({ from, to }: DayRange, length: number): DayRange[] {
  const pieces: DayRange[] = []
  for (let first = from; first <= to; first = addDays(first, length)) {
    const last = addDays(first, length - 1)
    pieces.push({ from: first, to: last < to ? last : to })
  }
  return pieces
}
