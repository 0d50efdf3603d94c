/** One sync of one account: reads the directory, plans and checks the change, and switches to it in one transaction. */
import type { Clock } from '../http/call.ts'
import type { Log } from '../process/log.ts'
import type { Store } from '../store/store.ts'
import { DirectoryClient, type ClientDependencies } from './client.ts'
import { findConnection, holdConnection } from './connections.ts'
import { lostJob, SyncFailure } from './failures.ts'
import { createMemberStage, readStoredGroups, writeGroups } from './groups.ts'
import { endJob, type Job } from './job-store.ts'
import { emptyReport, indexStored, planSync } from './plan.ts'
import { Directory } from './read.ts'

export type SyncDependencies = ClientDependencies & {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
}

export type SyncOptions = {
  /** Ends the sync; its reason is a SyncFailure. */
  readonly signal: AbortSignal
  /** Lifts the deletion gate for this run. */
  readonly allowDeletions: boolean
}

/**
 * Reads the directory and computes the changes. Members are staged for `job`; without one nothing is written. Resolves to
 * the rows to write with their report, and the `fault` that blocks them without `--allow-deletions`.
 * @throws SyncFailure if the directory cannot be read completely.
 */
export async function prepareSync(
  accountId: string,
  { signal, allowDeletions }: SyncOptions,
  dependencies: SyncDependencies,
  job?: Job,
) {
  const { store, clock } = dependencies
  const connection = await findConnection(store, accountId)
  if (connection === undefined) throw connectionChanged()
  const stored = await readStoredGroups(store, accountId)
  const report = emptyReport()
  await using client = new DirectoryClient(connection, signal, dependencies)
  const findFormer = indexStored(stored)
  const stage = createMemberStage(store, findFormer, report, job)
  const directory = new Directory(client, connection, stage)
  const staying = await directory.read(stored)
  const sides = { stored, findFormer, remote: directory.groups, staying, connection }
  const { fault, ...plan } = await planSync(sides, report, clock())
  report.warnings.push(...directory.warnings())
  return { connection, groups: directory.groups, report, ...plan, fault: allowDeletions ? undefined : fault }
}

/**
 * Runs a sync, and marks its job as succeeded in one transaction with its last writes. Resolves to the job.
 * @throws SyncFailure if nothing was changed.
 */
export async function runSync(job: Job, options: SyncOptions, dependencies: SyncDependencies): Promise<Job> {
  const { id: job_id, account_id } = job
  const { store, clock, log } = dependencies
  const { connection, rows, report, total, fault } = await prepareSync(account_id, options, dependencies, job)
  if (fault !== undefined) throw fault
  const { warnings } = report
  const isOdd = warnings.length > 0
  const ended = await store.transaction(async (queries) => {
    options.signal.throwIfAborted()
    await writeGroups(queries, account_id, rows)
    // Last, since these lock the rows of the connection and the job: if one has changed, everything is rolled back.
    if (!(await holdConnection(queries, connection))) throw connectionChanged()
    const done = await endJob(queries, job, { synced_groups: total, report }, clock())
    if (done === undefined) throw lostJob()
    return done
  })
  const { synced_groups, deleted_groups } = ended
  const details = { job_id, account_id, synced_groups, deleted_groups, ...(isOdd && { warnings }) }
  log[isOdd ? 'warn' : 'info'](details, 'directory sync succeeded')
  return ended
}

function connectionChanged(): SyncFailure {
  return new SyncFailure('connection_changed', 'the connection has changed since the sync began')
}
