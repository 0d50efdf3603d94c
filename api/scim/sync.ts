/** One sync of one account: reads the directory, plans and checks the change, and switches to it in one transaction. */
import type { Clock } from '../http/call.ts'
import type { Queries, Store } from '../store/store.ts'
import { DirectoryClient, type ClientDependencies } from './client.ts'
import { findConnection, holdConnection, type Connection } from './connections.ts'
import { SyncFailure } from './failures.ts'
import { applyPlan, MemberStage, readStoredGroups, type Staging } from './groups.ts'
import { endJob, renewLease, type Job, type Runner } from './job-store.ts'
import { byExternalId, deletionFault, isLiving, planSync, reportOf } from './plan.ts'
import { Directory } from './read.ts'

export interface SyncDependencies extends ClientDependencies {
  readonly store: Store
  readonly clock: Clock
}

export interface SyncOptions {
  /** Ends the sync; its reason is a SyncFailure. */
  readonly signal: AbortSignal
  /** Called after each page with the groups read so far, and the directory's total if it states one. */
  readonly progress: (read: number, total: number | undefined) => void
  /** Lifts the deletion gate for this run. */
  readonly allowDeletions: boolean
}

/**
 * Reads the directory and computes the changes. Members are staged; without `staging` nothing is written. Resolves to the
 * changes with their report, and the `fault` that blocks them without `--allow-deletions`.
 * @throws {SyncFailure} if the directory cannot be read completely.
 */
export async function prepareSync(
  accountId: string,
  { signal, progress, allowDeletions }: SyncOptions,
  dependencies: SyncDependencies,
  staging?: Staging,
) {
  const { store, limits, clock } = dependencies
  const connection = await findConnection(store, accountId)
  if (connection === undefined) throw connectionChanged()
  const stored = await readStoredGroups(store, accountId)
  const byId = new Map(stored.map((group) => [group.scim_id, group]))
  const byOtherId = byExternalId(stored.filter(isLiving))
  await using client = new DirectoryClient(connection, signal, dependencies)
  const directory = new Directory({
    client,
    limits,
    connection,
    stage: new MemberStage(store, staging),
    findFormer: ({ scim_id, external_id }) => byId.get(scim_id) ?? byOtherId.get(external_id ?? ''),
    progress,
  })
  await directory.read()
  const absent = stored.filter((group) => isLiving(group) && !directory.groups.has(group.scim_id))
  // An empty directory alone stops the sync, so absent groups are not confirmed.
  const mayConfirm = directory.groups.size > 0 || allowDeletions
  const staying = await directory.confirmAbsent(mayConfirm ? absent.map(({ scim_id }) => scim_id) : [])
  const changes = await planSync(stored, directory.groups, staying, clock())
  const report = reportOf(changes, directory.warnings())
  const fault = allowDeletions
    ? undefined
    : deletionFault({ stored, changes, received: directory.groups.size }, connection)
  // Groups present after the sync: also unlisted ones that stay.
  const present = stored.filter(isLiving).length + report.groups_added.count - report.groups_deleted.count
  return { connection, changes, report, fault, present }
}

/**
 * Reads the first groups as a sync would, and describes them in lines. Writes nothing.
 * @throws {SyncFailure} if the directory returns no list of groups.
 */
export async function tryDirectory(
  connection: Connection,
  signal: AbortSignal,
  dependencies: SyncDependencies,
): Promise<string[]> {
  const { store, limits } = dependencies
  await using client = new DirectoryClient(connection, signal, dependencies)
  const directory = new Directory({
    client,
    limits,
    connection,
    isTrial: true,
    stage: new MemberStage(store, undefined),
    findFormer: () => undefined,
    progress: () => undefined,
  })
  const { query, total, isEndStated } = await directory.read()
  const groups = [...directory.groups.values()]
  const withMembers = groups.filter(({ members }) => members !== null && members.count > 0)
  const byIndex = 'startIndex' in query ? 'index' : 'nothing, all groups come at once'
  const lines = [
    `address: ${connection.url}`,
    `pages by: ${isEndStated ? 'cursor' : byIndex}`,
    `groups in all: ${total ?? (isEndStated ? 'not stated' : 'not stated, so a sync deletes nothing')}`,
    `groups on the first page: ${groups.length}`,
  ]
  if (connection.members !== 'off') lines.push(`of these with members: ${withMembers.length}`)
  return [...lines, ...directory.warnings()]
}

/**
 * Runs a sync and marks its job as succeeded, in one transaction with its last writes. Resolves to the job, the number of
 * groups written, and the warnings.
 * @throws {SyncFailure} if the sync fails.
 */
export async function sync(job: Job, runner: Runner, options: SyncOptions, dependencies: SyncDependencies) {
  const { store, clock } = dependencies
  const hold = async (queries: Queries) => {
    options.signal.throwIfAborted()
    if (!(await renewLease(queries, job, runner, clock()))) throw lostJob()
  }
  const { account_id } = job
  const prepared = await prepareSync(account_id, options, dependencies, { job, hold })
  const { connection, changes, report, fault, present } = prepared
  if (fault !== undefined) throw fault
  const deleted_groups = report.groups_deleted.count
  return await store.transaction(async (queries) => {
    options.signal.throwIfAborted()
    await applyPlan(queries, account_id, changes)
    // Last, since these lock the rows of the connection and the job: if one has changed, everything is rolled back.
    if (!(await holdConnection(queries, connection))) throw connectionChanged()
    const success = { synced_groups: present, deleted_groups, report }
    const ended = await endJob(queries, job, runner, { success, now: clock() })
    if (ended === undefined) throw lostJob()
    return { ended, changed: changes.length - deleted_groups, warnings: report.warnings }
  })
}

/** The failure of a job that another process ended. */
export function lostJob(): SyncFailure {
  return new SyncFailure('interrupted', 'another process ended this job as interrupted')
}

function connectionChanged(): SyncFailure {
  return new SyncFailure('connection_changed', 'the connection has changed since the sync began')
}
