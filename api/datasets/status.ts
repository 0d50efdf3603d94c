/** GET /status (CONTRACT 4.6): how fresh the dataset is; no key needed. */
import { addDays, utcDay, wholeSeconds } from '../../pipeline/contract.ts'
import type { Clock, Handler } from '../call.ts'
import type { CronSchedule } from '../cron-schedule.ts'
import { sendJson } from '../respond.ts'
import type { CurrentSnapshot } from './current-snapshot.ts'

// How long after its start a nightly run may take before the dataset counts as late.
const GRACE_MS = 3_600_000

/** Serves the status of the current snapshot. */
export function datasetStatus(snapshots: CurrentSnapshot, schedule: CronSchedule, clock: Clock): Handler {
  return (_request, reply) => {
    const now = clock()
    const facts = snapshots.facts()
    const nextRun = schedule.next(now)
    sendJson(reply, 200, {
      data: {
        as_of: facts?.asOf ?? null,
        data_through: facts?.dataThrough ?? null,
        next_run_expected: nextRun === undefined ? null : wholeSeconds(nextRun),
        stale: isStale(facts?.dataThrough, schedule, now),
        days_missing: facts?.daysMissing ?? [],
      },
    })
  }
}

/** Whether `dataThrough` lies before the day that the last due run should have published up to. */
export function isStale(dataThrough: string | undefined, schedule: CronSchedule, now: Date): boolean {
  const due = schedule.last(new Date(now.getTime() - GRACE_MS))
  if (due === undefined) return false
  return dataThrough === undefined || dataThrough < addDays(utcDay(due), -1)
}
