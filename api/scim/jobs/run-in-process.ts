/** Runs a sync in this process, from the directory to the store. */
import type { Queries, Store } from '../../store/store.ts'
import type { Clock } from '../../http/call.ts'
import { workOf } from '../sync/apply.ts'
import { SyncFailure } from '../failures.ts'
import { stageMembers } from '../sync/stage.ts'
import {
  carryOut,
  prepareSync,
  type Prepared,
  type SyncDependencies,
  type SyncOptions,
} from '../sync/sync.ts'
import { beat, succeedJob, type RunningJob } from './job-store.ts'

interface SyncTask {
  readonly running: RunningJob
  readonly accountId: string
}

/** The result of a sync. */
export interface SyncReport {
  /** Groups present after it, deleted by it and written by it. */
  readonly synced: number
  readonly deleted: number
  readonly changed: number
  /** Whether absent groups counted as deleted. */
  readonly complete: boolean
  readonly warnings: readonly string[]
}

interface StoreDependencies extends SyncDependencies {
  readonly store: Store
  readonly clock: Clock
}

/**
 * Runs a sync and marks its job as succeeded, in one transaction with its last writes.
 * @throws {SyncFailure} if the sync fails.
 */
export type RunSync = (
  task: SyncTask,
  options: SyncOptions,
  dependencies: StoreDependencies,
) => Promise<SyncReport>

export const runInProcess: RunSync = async ({ running, accountId }, options, dependencies) => {
  const prepared = await prepareSync(dependencies.store, accountId, options, dependencies)
  if (prepared.fault !== undefined) throw prepared.fault
  options.signal.throwIfAborted()
  return await finish(running, prepared, options.signal, dependencies)
}

async function finish(
  running: RunningJob,
  { connection, plan, complete, warnings }: Prepared,
  signal: AbortSignal,
  { store, clock }: StoreDependencies,
): Promise<SyncReport> {
  const work = workOf(plan)
  const now = clock()
  const hold = async (queries: Queries) => {
    signal.throwIfAborted()
    if (!(await beat(queries, running))) throw lostJob()
  }
  const staged = await stageMembers(store, work.changes, { accountId: connection.accountId, now, hold })
  return await store.longTransaction(async (queries) => {
    await carryOut(queries, connection, { work, staged, now })
    // Last, since it locks the row of the job: until here the heartbeat must not stop. If another process ended the job
    // as abandoned, everything is rolled back.
    if (!(await beat(queries, running))) throw lostJob()
    const counts = { synced: plan.present, deleted: plan.deletions.length }
    await succeedJob(queries, running.id, { ...counts, now: clock() })
    return { ...counts, changed: plan.changes.length, complete, warnings }
  })
}

/** The failure of a job that another process ended. */
export function lostJob(): SyncFailure {
  return new SyncFailure('interrupted', 'another process ended this job as abandoned')
}
