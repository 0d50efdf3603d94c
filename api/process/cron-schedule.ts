/** The times of a cron expression in UTC, from any time and in both directions, which node-cron does not have. */
import { Cron } from 'croner'

/** The times of a cron expression. */
export type CronSchedule = {
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
  // Every page asks for them, and croner takes longer than the rest of a cached reply.
  let known: ReturnType<typeof timesAround> | undefined
  const around = (time: Date) => {
    if (known !== undefined && time >= known.from && time < known.until) return known
    known = timesAround(cron, time)
    return known
  }
  return { next: (time) => around(time).next, last: (time) => around(time).last }
}

/** The times around `time`, which stay the same from `from` until just before `until`. */
function timesAround(cron: Cron, time: Date) {
  const next = cron.nextRun(time) ?? undefined
  // The runs before the next whole second.
  const last = cron.previousRuns(1, new Date(Math.floor(time.getTime() / 1000) * 1000 + 1000))[0]
  return { next, last, from: last ?? time, until: next ?? new Date(8.64e15) }
}
