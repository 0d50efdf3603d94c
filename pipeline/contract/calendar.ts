/** The calendar of the dataset: UTC days and their ranges, and the times and identifiers of snapshots. */
import { UTCDate } from '@date-fns/utc'
// Single modules: loading the package's index takes more than a second.
import { addDays as plusDays } from 'date-fns/addDays'
import { millisecondsInDay } from 'date-fns/constants'
import { isValid } from 'date-fns/isValid'
import { parseISO } from 'date-fns/parseISO'
import { z } from 'zod'

/** First day of the dataset (UTC). Usage before it is not part of the dataset; windows are clamped to it. */
export const FLOOR_DATE = '2025-01-01'

const SNAPSHOT_ID = /^\d{8}T\d{6}Z$/

/** A time in ISO 8601 UTC and whole seconds, the dataset's one precision. */
export const timeSchema = z.iso.datetime({ precision: 0 })

/** A calendar date that exists, `YYYY-MM-DD`. */
export const daySchema = z.iso.date()

/** A calendar day in UTC, `YYYY-MM-DD`. */
export function utcDay(time: Date): string {
  // On the path of every request; a date formatter takes ten times as long.
  return time.toISOString().slice(0, 'YYYY-MM-DD'.length)
}

/** The day `days` after `day` (before, if negative); `YYYY-MM-DD`. */
export function addDays(day: string, days: number): string {
  return utcDay(plusDays(new UTCDate(day), days))
}

/** Number of days from `from` to `to`; `YYYY-MM-DD`. */
export function daysBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / millisecondsInDay
}

/** The last completed UTC day at `now`: a run publishes up to this day (CONTRACT 7). */
export function lastCompletedDay(now: Date): string {
  return addDays(utcDay(now), -1)
}

/** A time in the form of timeSchema: `2026-11-20T02:00:00Z`. */
export function wholeSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d+/, '')
}

/** Identifier of the snapshot computed at `asOf`: the time in basic form, `20261120T020000Z`. */
export function snapshotId(asOf: Date): string {
  return wholeSeconds(asOf).replaceAll(/[-:]/g, '')
}

/** The time in a snapshot's identifier; undefined for any other text. */
export function asOfFromId(id: string): Date | undefined {
  const time = SNAPSHOT_ID.test(id) ? parseISO(id) : undefined
  return isValid(time) ? time : undefined
}

/** Days from `from` to `to`, both inclusive, `YYYY-MM-DD`. */
export type DayRange = { readonly from: string; readonly to: string }

/** A range in words; one day is its date alone. */
export function describeRange({ from, to }: DayRange): string {
  return from === to ? from : `${from} to ${to}`
}
