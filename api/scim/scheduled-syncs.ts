import { cronSchedule, type CronSchedule } from '../cron-schedule.ts'
import { advanceSchedule, dueConnections } from './connection-store.ts'
import { requestJob } from './job-store.ts'
import type { JobEffects } from './run-job.ts'

/**
 * Requests the jobs whose time has come; call it every now and then. Of several processes one does, and moments
 * that were missed while none ran come as one.
 */
export function watchSchedules({ store, clock }: Pick<JobEffects, 'store' | 'clock'>): () => Promise<void> {
  const schedules = rememberSchedules()
  return async () => {
    for (const connection of await dueConnections(store, clock())) {
      const { accountId, schedule } = connection
      const next = schedule === null ? undefined : schedules(schedule).next(clock())
      if (await advanceSchedule(store, connection, next)) await requestJob(store, accountId, clock())
    }
  }
}

// Reading an expression leaves a task in node-cron's registry: once for each is enough.
function rememberSchedules(): (expression: string) => CronSchedule {
  const known = new Map<string, CronSchedule>()
  return (expression) => {
    const schedule = known.get(expression) ?? cronSchedule(expression)
    known.set(expression, schedule)
    return schedule
  }
}
