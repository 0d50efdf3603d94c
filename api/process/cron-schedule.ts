/**
 * When something is due, from its cron expression in UTC. node-cron tells the next run only of a task that
 * runs, and only from the present moment; what is asked here is any moment, forwards and backwards.
 */
import { createTask, parse } from 'node-cron'
import { addDays, utcDay } from '../../pipeline/contract/calendar.ts'

/** The moments that a cron expression names. */
export interface CronSchedule {
  /** The first moment after `time`; undefined when there is none within 30 years. */
  next(time: Date): Date | undefined
  /** The last moment at or before `time`; undefined when there was none within 30 years. */
  last(time: Date): Date | undefined
}

// 29 February on a given weekday comes every 28 years.
const HORIZON_DAYS = 30 * 366

/** Reads a cron expression, which must be valid (node-cron's `validate` tells). */
export function cronSchedule(expression: string): CronSchedule {
  const times = timesOfDay(expression)
  const task = createTask(expression, () => undefined, { timezone: 'UTC' })
  const runsOn = (day: string) => {
    const runs = times.map((time) => new Date(`${day}T${time}Z`))
    // Which days match is node-cron's knowledge (L, W and # included); one time of the day tells it.
    return runs[0] !== undefined && task.match(runs[0]) ? runs : []
  }
  return {
    next: (time) => search(time, 1, (day) => runsOn(day).find((run) => run > time)),
    last: (time) => search(time, -1, (day) => runsOn(day).findLast((run) => run <= time)),
  }
}

function search(from: Date, step: 1 | -1, runOn: (day: string) => Date | undefined): Date | undefined {
  const first = utcDay(from)
  for (let days = 0; days <= HORIZON_DAYS; days += 1) {
    const run = runOn(addDays(first, days * step))
    if (run !== undefined) return run
  }
  return undefined
}

function timesOfDay(expression: string): string[] {
  const { hour, minute, second } = parse(expression)
  return hour
    .flatMap((h) => minute.flatMap((m) => second.map((s) => [h, m, s])))
    .map((parts) => parts.map((part) => String(part).padStart(2, '0')).join(':'))
    .toSorted()
}
