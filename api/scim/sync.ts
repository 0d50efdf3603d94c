/** One sync of one account: reads the directory, plans and checks the change, and switches to it in one transaction. */
import type { Clock } from '../http/call.ts'
import type { Queries, Store } from '../store/store.ts'
import { createClient, type ClientDependencies } from './client.ts'
import { findConnection, holdConnection, type Connection } from './connections.ts'
import { SyncFailure } from './failures.ts'
import { applyPlan, readLocalGroups, readMemberNames } from './groups.ts'
import { ownsJob, succeedJob, type RunningJob } from './job-store.ts'
import { MemberStage, NAMED, takeMembers } from './members.ts'
import { byExternalId, deletionFault, exceedsGate, goneIn, planSync, type Change, type Plan } from './plan.ts'
import { readDirectory } from './read.ts'
import { reportOf } from './report.ts'
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

/** A plan, and the failure that blocks it without `--allow-deletions`. */
export interface Prepared {
  readonly connection: Connection
  readonly plan: Plan
  readonly fault: SyncFailure | undefined
  /** A sentence for each kind of input that was interpreted, left out or kept. */
  readonly warnings: readonly string[]
}

/** The result of a sync. */
export interface SyncResult {
  /** Groups present after it, deleted by it and written by it. */
  readonly synced: number
  readonly deleted: number
  readonly changed: number
  readonly warnings: readonly string[]
}

/**
 * Reads the directory and computes the changes. Members are staged; without a `stage` nothing is written.
 * @throws {SyncFailure} if the directory cannot be read completely.
 */
export async function prepareSync(
  accountId: string,
  options: SyncOptions,
  dependencies: SyncDependencies,
  stage?: MemberStage,
): Promise<Prepared> {
  const { store, limits } = dependencies
  const connection = await findConnection(store, accountId)
  if (connection === undefined) throw changed()
  const local = await readLocalGroups(store, accountId)
  const client = createClient(connection, options.signal, dependencies)
  try {
    const byId = new Map(local.map((group) => [group.scimId, group]))
    const byOtherId = byExternalId(local.filter((group) => !group.deleted))
    const directory = await readDirectory({
      client,
      limits,
      members: connection.members,
      progress: options.progress,
      mayMiss: (groups, all) => !exceedsGate(groups, all, connection.gate),
      takeMembers: ({ scimId, externalId }, members) =>
        takeMembers(members, byId.get(scimId) ?? byOtherId.get(externalId ?? ''), { queries: store, stage }),
      onPage: async () => await stage?.flush(),
    })
    const first = await planSync(local, directory.groups)
    // An empty directory alone stops the sync, so absent groups are not confirmed.
    const mayConfirm = directory.groups.size > 0 || options.allowDeletions
    const staying = await directory.confirmAbsent(mayConfirm ? goneIn(first) : [])
    const plan = await nameLeaving(store, await planSync(local, directory.groups, staying))
    const fault = options.allowDeletions ? undefined : deletionFault(plan, connection.gate)
    return { connection, plan, fault, warnings: directory.warnings.lines() }
  } finally {
    await client.close()
  }
}

/**
 * Runs a sync and marks its job as succeeded, in one transaction with its last writes.
 * @throws {SyncFailure} if the sync fails.
 */
export async function sync(
  running: RunningJob,
  accountId: string,
  options: SyncOptions,
  dependencies: SyncDependencies,
): Promise<SyncResult> {
  const { store, clock } = dependencies
  const hold = async (queries: Queries) => {
    options.signal.throwIfAborted()
    if (!(await ownsJob(queries, running))) throw lostJob()
  }
  const stage = new MemberStage(store, { id: running.id, accountId }, hold)
  const { connection, plan, fault, warnings } = await prepareSync(accountId, options, dependencies, stage)
  if (fault !== undefined) throw fault
  const report = reportOf(plan, warnings)
  const counts = { synced: plan.present, deleted: plan.deletions.length }
  await store.transaction(async (queries) => {
    await hold(queries)
    await applyPlan(queries, accountId, plan, clock())
    // Last, since these lock the rows of the connection and the job: if one has changed, everything is rolled back.
    if (!(await holdConnection(queries, connection))) throw changed()
    if (!(await succeedJob(queries, running, { ...counts, report, now: clock() }))) throw lostJob()
  })
  return { ...counts, changed: plan.changes.length, warnings }
}

/** The plan with the names of the first members that leave emptied groups, which are the stored ones. */
async function nameLeaving(queries: Queries, plan: Plan): Promise<Plan> {
  const changes: Change[] = []
  let named = 0
  for (const change of plan.changes) {
    const { local, members } = change
    const stored = members?.count === 0 && named < NAMED ? (local?.memberList ?? null) : null
    const leftNames = stored === null ? [] : [...(await readMemberNames(queries, stored, NAMED)).values()]
    named += leftNames.length
    changes.push(
      members === null || stored === null ? change : { ...change, members: { ...members, leftNames } },
    )
  }
  return { ...plan, changes }
}

/** The failure of a job that another process ended. */
export function lostJob(): SyncFailure {
  return new SyncFailure('interrupted', 'another process ended this job as abandoned')
}

function changed(): SyncFailure {
  return new SyncFailure('connection_changed', 'the connection has changed since the sync began')
}
