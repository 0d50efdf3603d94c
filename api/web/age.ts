import type { CronSchedule } from '../process/cron-schedule.ts'
import type { SnapshotFacts } from '../datasets/snapshots/open-snapshot.ts'
import { isOverdue, isStale } from '../datasets/status.ts'

/**
 * The age of the data: all due days are present (`current`); days are missing although it was published after the last
 * due run (`ended`: no later usage was delivered); or no snapshot was published since (`overdue`).
 */
export type Age = 'current' | 'ended' | 'overdue'

/** The age of a snapshot's data at `now`. */
export function ageOf(
  { asOf, dataThrough }: Pick<SnapshotFacts, 'asOf' | 'dataThrough'>,
  schedule: CronSchedule,
  now: Date,
): Age {
  if (!isStale(dataThrough, schedule, now)) return 'current'
  return isOverdue(asOf, schedule, now) ? 'overdue' : 'ended'
}
