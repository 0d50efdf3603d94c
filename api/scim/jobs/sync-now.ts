/** Runs a sync in the operator's process, under the service's rule: one job per account at a time. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../http/errors.ts'
import { watchAbandonedJobs } from './abandoned-jobs.ts'
import { findJob, requestJob, takeJob, type Job } from './job-store.ts'
import { runJob, type JobDependencies } from './run-job.ts'
import type { SyncOptions } from '../sync/sync.ts'

interface NowDependencies extends JobDependencies {
  readonly note: (line: string) => void
}

/** Runs a sync of the account, after any open one, and resolves to its finished job. */
export async function syncNow(
  accountId: string,
  options: SyncOptions,
  dependencies: NowDependencies,
): Promise<Job> {
  const { store, clock, note, heartbeat } = dependencies
  const runner = randomUUID()
  // Checks for abandoned jobs only while it runs none.
  const itself = { id: runner, runs: () => false, endOf: () => undefined, forget: () => undefined }
  const endAbandonedJobs = watchAbandonedJobs(itself, dependencies)
  let waitedFor: string | undefined
  for (;;) {
    options.signal.throwIfAborted()
    const open = await requestJob(store, accountId, clock())
    if (open === undefined) throw new OperatorError('The connection was removed a moment ago')
    const job = await takeJob(store, { id: open.id, runner }, clock())
    if (job !== undefined) {
      await runJob(job, runner, options, dependencies)
      return (await findJob(store, accountId, job.id)) ?? job
    }
    if (open.id !== waitedFor) note(`Job ${open.id} is running in another process; waiting for its end.`)
    waitedFor = open.id
    await endAbandonedJobs()
    await sleep(heartbeat.beatMs)
  }
}
