/** The times of a cron expression in UTC, from any time on, which node-cron does not have. */
import { Cron } from 'croner'

/** The first time of a cron expression after `time`; undefined if there is none. */
export type CronSchedule = { next(time: Date): Date | undefined }

/** Reads a cron expression, which must be valid (node-cron's `validate`). */
export function cronSchedule(expression: string): CronSchedule {
  // node-cron also takes whole names of months and days, and wants both the day of the month and of the week to match.
  const short = expression.replaceAll(/([a-z]{3})[a-z]+/gi, '$1')
  const cron = new Cron(short, { paused: true, timezone: 'UTC', domAndDow: true })
  // Every page asks for the same one, and croner takes longer than the rest of a cached reply.
  let known: { readonly time: Date; readonly next: Date | undefined } | undefined
  return {
    next(time) {
      if (known?.time.getTime() !== time.getTime()) known = { time, next: cron.nextRun(time) ?? undefined }
      return known.next
    },
  }
}
