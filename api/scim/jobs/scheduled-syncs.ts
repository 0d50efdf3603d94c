import { cronSchedule, type CronSchedule } from '../../process/cron-schedule.ts'
import { advanceSchedule, dueConnections, readConnection } from '../directory/connection-store.ts'
import { requestJobWithin } from './job-store.ts'
import type { JobDependencies } from './run-job.ts'

/** Requests due jobs; call it at intervals. Of several processes one does; several missed times give one job. */
export function watchSchedules({
  store,
  clock,
  log,
}: Pick<JobDependencies, 'store' | 'clock' | 'log'>): () => Promise<void> {
  const schedules = rememberSchedules()

  async function start(row: unknown): Promise<void> {
    const connection = readConnection(row)
    const { accountId, schedule } = connection
    const next = schedule === null ? undefined : schedules(schedule).next(clock())
    // In one transaction: a process that dies in between would lose the sync.
    await store.transaction(async (queries) => {
      if (await advanceSchedule(queries, connection, next))
        await requestJobWithin(queries, accountId, { now: clock(), scheduled: true })
    })
  }

  return async () => {
    for (const row of await dueConnections(store, clock())) {
      try {
        await start(row)
      } catch (error) {
        log.error({ err: error }, 'a scheduled directory sync could not be started')
      }
    }
  }
}

// node-cron registers a task for every parsed expression, so each is parsed once.
function rememberSchedules(): (expression: string) => CronSchedule {
  const known = new Map<string, CronSchedule>()
  return (expression) => {
    const schedule = known.get(expression) ?? cronSchedule(expression)
    known.set(expression, schedule)
    return schedule
  }
}
