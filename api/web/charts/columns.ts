/** The columns of a chart: days, or whole weeks if days would be too narrow. */
import type { DateWindow } from '../../datasets/rankings/window.ts'
import { eachDay } from '../days.ts'
import { OTHERS, type Ink } from './colours.ts'

/** Usage per day, `YYYY-MM-DD`, without days of no usage. */
export type Daily = ReadonlyMap<string, bigint>

/** A band or a line of a chart: an app, or all others together. */
export interface Band extends Ink {
  readonly name: string
  readonly daily: Daily
}

/** Missing, partial and restated days. */
export interface SpecialDays {
  readonly missing: ReadonlySet<string>
  readonly restated: ReadonlySet<string>
}

export interface Column extends DateWindow {
  /** Usage per band. */
  readonly values: readonly bigint[]
  readonly total: bigint
  readonly days: number
  /** How many of its days are missing, and how many were restated. */
  readonly missing: number
  readonly restated: number
}

export interface Columns {
  readonly unit: 'day' | 'week'
  readonly bands: readonly Band[]
  readonly columns: readonly Column[]
}

const MOST_DAYS = 120
const WEEK = 7

/**
 * Usage per day, or per week for windows of more than 120 days. Weeks are counted back from the last day. Days before
 * the first whole week have no column, since a part of a week looks like a collapse.
 */
export function columnsOf(
  bands: readonly Band[],
  window: DateWindow,
  { missing, restated }: SpecialDays,
): Columns {
  const days = eachDay(window)
  const unit = days.length > MOST_DAYS ? 'week' : 'day'
  const length = unit === 'week' ? WEEK : 1
  const whole = days.slice(days.length % length)
  const starts = whole.filter((_, index) => index % length === 0)
  const columns = starts.map((start, index) => {
    const own = whole.slice(index * length, (index + 1) * length)
    const values = bands.map(({ daily }) => sum(own.map((day) => daily.get(day) ?? 0n)))
    return {
      start,
      end: own.at(-1) ?? start,
      values,
      total: sum(values),
      days: own.length,
      missing: own.filter((day) => missing.has(day)).length,
      restated: own.filter((day) => restated.has(day)).length,
    }
  })
  return { unit, bands, columns }
}

/** The bands, and the rest of the `totals` per day as a last band, if there is any. */
export function withOthers(bands: readonly Band[], totals: Daily, name: string): readonly Band[] {
  const others = new Map(
    [...totals].map(([day, total]) => [
      day,
      bands.reduce((rest, { daily }) => rest - (daily.get(day) ?? 0n), total),
    ]),
  )
  const hasOthers = [...others.values()].some((usage) => usage > 0n)
  return hasOthers ? [...bands, { ...OTHERS, name, daily: others }] : bands
}

/** All usage of a band in its columns. */
export function totalOf({ columns }: Columns, band: number): bigint {
  return sum(columns.map(({ values }) => values[band] ?? 0n))
}

function sum(values: readonly bigint[]): bigint {
  return values.reduce((total, value) => total + value, 0n)
}
