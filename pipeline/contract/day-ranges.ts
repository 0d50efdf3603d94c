/** Days in a row. */
import { addDays } from './calendar.ts'

/** Days from `from` to `to`, both inclusive, `YYYY-MM-DD`. */
export type DayRange = { readonly from: string; readonly to: string }

/** The days of a range, so many at a time; none where it ends before it begins. */
export function piecesOf({ from, to }: DayRange, length: number): DayRange[] {
  const pieces: DayRange[] = []
  for (let first = from; first <= to; first = addDays(first, length)) {
    const last = addDays(first, length - 1)
    pieces.push({ from: first, to: last < to ? last : to })
  }
  return pieces
}
