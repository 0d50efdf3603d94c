/** One sync of one account: reads the directory, plans and checks the change, and switches to it in one transaction. */
import type { Clock } from '../http/call.ts'
import type { Queries, Store } from '../store/store.ts'
import { createClient, type ClientDependencies } from './client.ts'
import { findConnection, holdConnection } from './connections.ts'
import { SyncFailure } from './failures.ts'
import { applyPlan, createMemberStage, readLocalGroups, takeMembers, type MemberStage } from './groups.ts'
import { renewLease, succeedJob, type RunningJob } from './job-store.ts'
import { byExternalId, deletionFault, exceedsGate, goneIn, planSync, reportOf } from './plan.ts'
import { Directory } from './read.ts'
import type { Progress } from './walk.ts'

export interface SyncDependencies extends ClientDependencies {
  readonly store: Store
  readonly clock: Clock
}

export interface SyncOptions {
  /** Ends the sync; its reason is a SyncFailure. */
  readonly signal: AbortSignal
  readonly progress: Progress
  /** Lifts the deletion gate for this run. */
  readonly allowDeletions: boolean
}

/**
 * Reads the directory and computes the changes. Members are staged; without a `stage` nothing is written. Resolves to the
 * plan with its report, and the `fault` that blocks it without `--allow-deletions`.
 * @throws {SyncFailure} if the directory cannot be read completely.
 */
export async function prepareSync(
  accountId: string,
  { signal, progress, allowDeletions }: SyncOptions,
  dependencies: SyncDependencies,
  stage?: MemberStage,
) {
  const { store, limits } = dependencies
  const connection = await findConnection(store, accountId)
  if (connection === undefined) throw changed()
  const local = await readLocalGroups(store, accountId)
  const byId = new Map(local.map((group) => [group.scimId, group]))
  const byOtherId = byExternalId(local.filter((group) => !group.isDeleted))
  const client = createClient(connection, signal, dependencies)
  try {
    const directory = await Directory.read({
      client,
      limits,
      members: connection.members,
      progress,
      mayMiss: (groups, all) => !exceedsGate(groups, all, connection.gate_groups, connection),
      takeMembers: ({ scimId, externalId }, members) =>
        takeMembers(members, byId.get(scimId) ?? byOtherId.get(externalId ?? ''), store, stage),
      onPage: async () => await stage?.flush(),
    })
    const first = await planSync(local, directory.groups)
    // An empty directory alone stops the sync, so absent groups are not confirmed.
    const mayConfirm = directory.groups.size > 0 || allowDeletions
    const staying = await directory.confirmAbsent(mayConfirm ? goneIn(first) : [])
    const plan = await planSync(local, directory.groups, staying)
    const fault = allowDeletions ? undefined : deletionFault(plan, connection)
    return { connection, plan, report: reportOf(plan, directory.warnings()), fault }
  } finally {
    await client.close()
  }
}

/**
 * Runs a sync and marks its job as succeeded, in one transaction with its last writes. Resolves to the numbers of groups
 * present after it, deleted by it and written by it, and the warnings.
 * @throws {SyncFailure} if the sync fails.
 */
export async function sync(
  running: RunningJob,
  accountId: string,
  options: SyncOptions,
  dependencies: SyncDependencies & { readonly leaseMs: number },
) {
  const { store, clock, leaseMs } = dependencies
  const hold = async (queries: Queries) => {
    options.signal.throwIfAborted()
    if (!(await renewLease(queries, running, { now: clock(), leaseMs }))) throw lostJob()
  }
  const stage = createMemberStage(store, { id: running.id, accountId }, hold)
  const { connection, plan, report, fault } = await prepareSync(accountId, options, dependencies, stage)
  if (fault !== undefined) throw fault
  const counts = { synced: plan.present, deleted: plan.deletions.length }
  await store.transaction(async (queries) => {
    options.signal.throwIfAborted()
    await applyPlan(queries, accountId, plan, clock())
    // Last, since these lock the rows of the connection and the job: if one has changed, everything is rolled back.
    if (!(await holdConnection(queries, connection))) throw changed()
    if (!(await succeedJob(queries, running, { ...counts, report, now: clock() }))) throw lostJob()
  })
  return { ...counts, changed: plan.changes.length, warnings: report.warnings }
}

/** The failure of a job that another process ended. */
export function lostJob(): SyncFailure {
  return new SyncFailure('interrupted', 'another process ended this job as interrupted')
}

function changed(): SyncFailure {
  return new SyncFailure('connection_changed', 'the connection has changed since the sync began')
}
