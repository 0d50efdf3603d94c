/** What the columns of the chart stand for: days, or whole weeks where days would be too narrow. */
import type { DateWindow } from '../../datasets/rankings/window.ts'
import { eachDay } from '../days.ts'
import type { DailyTokens } from './page-data.ts'

/** A band of the chart: an app, or all others together. */
export interface Band {
  /** By which its colour is found. */
  readonly key: string
  readonly name: string
  readonly daily: DailyTokens
}

export interface Column extends DateWindow {
  /** Tokens of each band. */
  readonly values: readonly bigint[]
  readonly total: bigint
  /** How many of its days the data does not have. */
  readonly missing: number
}

export interface Columns {
  readonly unit: 'day' | 'week'
  readonly columns: readonly Column[]
}

const MOST_DAYS = 120
const WEEK = 7

/**
 * Tokens per day, or per week where the window has more than 120 days. Weeks are counted back from its last day, and
 * the days before the first whole week have no column: next to whole weeks a part of one looks like a collapse.
 */
export function columnsOf(bands: readonly Band[], window: DateWindow, missing: ReadonlySet<string>): Columns {
  const days = eachDay(window)
  const unit = days.length > MOST_DAYS ? 'week' : 'day'
  const length = unit === 'week' ? WEEK : 1
  const whole = days.slice(days.length % length)
  const starts = whole.filter((_, index) => index % length === 0)
  const columns = starts.map((start, index) => {
    const own = whole.slice(index * length, (index + 1) * length)
    const values = bands.map(({ daily }) => own.reduce((sum, day) => sum + (daily.get(day) ?? 0n), 0n))
    return {
      start,
      end: own.at(-1) ?? start,
      values,
      total: values.reduce((sum, value) => sum + value, 0n),
      missing: own.filter((day) => missing.has(day)).length,
    }
  })
  return { unit, columns }
}
