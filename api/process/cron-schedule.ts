/** The times of a cron expression in UTC, from any time and in both directions, which node-cron cannot tell. */
import { Cron } from 'croner'

/** The times of a cron expression. */
export interface CronSchedule {
  /** The first time after `time`; undefined if there is none. */
  next(time: Date): Date | undefined
  /** The last time at or before `time`; undefined if there was none. */
  last(time: Date): Date | undefined
}

/** Reads a cron expression, which must be valid (node-cron's `validate`). */
export function cronSchedule(expression: string): CronSchedule {
  // node-cron also takes whole names of months and days, and wants both the day of the month and of the week to match.
  const short = expression.replaceAll(/([a-z]{3})[a-z]+/gi, '$1')
  const cron = new Cron(short, { paused: true, timezone: 'UTC', domAndDow: true })
  return {
    next: (time) => cron.nextRun(time) ?? undefined,
    // The runs before the next whole second.
    last: (time) => cron.previousRuns(1, new Date(Math.floor(time.getTime() / 1000) * 1000 + 1000))[0],
  }
}
