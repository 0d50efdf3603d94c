/**
 * The times of a cron expression in UTC. node-cron computes only the next run of a running task from the present time;
 * this works from any time, in both directions.
 */
import { createTask, parse } from 'node-cron'
import { addDays, utcDay } from '../../pipeline/contract/calendar.ts'

/** The times of a cron expression. */
export interface CronSchedule {
  /** The first time after `time`; undefined if there is none within 30 years. */
  next(time: Date): Date | undefined
  /** The last time at or before `time`; undefined if there was none within 30 years. */
  last(time: Date): Date | undefined
}

interface Interval {
  readonly last: Date | undefined
  readonly next: Date | undefined
}

// 29 February on a given weekday comes every 28 years.
const HORIZON_DAYS = 30 * 366

/** Cached intervals: callers need the present one and an earlier one. */
const REMEMBERED = 2

/** Reads a cron expression, which must be valid (node-cron's `validate`). */
export function cronSchedule(expression: string): CronSchedule {
  const runsOn = createRunsOn(expression)
  let remembered: readonly Interval[] = []
  function intervalAt(time: Date): Interval {
    const known = remembered.find(
      ({ last, next }) => (last === undefined || last <= time) && (next === undefined || next > time),
    )
    const interval = known ?? {
      last: search(time, -1, (day) => runsOn(day).findLast((run) => run <= time)),
      next: search(time, 1, (day) => runsOn(day).find((run) => run > time)),
    }
    if (known === undefined) remembered = [interval, ...remembered].slice(0, REMEMBERED)
    return interval
  }
  return { next: (time) => intervalAt(time).next, last: (time) => intervalAt(time).last }
}

/** The times of a day, `YYYY-MM-DD`, in order. */
function createRunsOn(expression: string): (day: string) => readonly Date[] {
  const { hour, minute, second, month, dayOfMonth } = parse(expression)
  const times = hour
    .flatMap((h) => minute.flatMap((m) => second.map((s) => [h, m, s])))
    .map((parts) => parts.map((part) => String(part).padStart(2, '0')).join(':'))
    .toSorted()
  const task = createTask(expression, () => undefined, { timezone: 'UTC' })
  const months = new Set(month.map(Number))
  const days = new Set(dayOfMonth.map(Number))
  // Letters (L, W) become no number: only node-cron knows their days.
  const mayBeDay = (day: string) =>
    months.has(Number(day.slice(5, 7))) && (days.has(Number.NaN) || days.has(Number(day.slice(8))))
  return (day) => {
    // node-cron matches slowly, so it checks only days that match the plain fields.
    if (!mayBeDay(day)) return []
    const runs = times.map((time) => new Date(`${day}T${time}Z`))
    return runs[0] !== undefined && task.match(runs[0]) ? runs : []
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
