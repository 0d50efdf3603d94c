/** One sync of one account: reads the directory, plans and checks the change, and switches to it in one transaction. */
import type { Clock } from '../http/call.ts'
import type { Store } from '../store/store.ts'
import { DirectoryClient, type ClientDependencies } from './client.ts'
import { findConnection, holdConnection, type Connection } from './connections.ts'
import { SyncFailure } from './failures.ts'
import { applyPlan, MemberStage, readStoredGroups } from './groups.ts'
import type { Job, Runner } from './job-store.ts'
import { byExternalId, deletionFault, isLiving, planSync, reportOf } from './plan.ts'
import { Directory } from './read.ts'

export interface SyncDependencies extends ClientDependencies {
  readonly store: Store
  readonly clock: Clock
}

export interface SyncOptions {
  /** Ends the sync; its reason is a SyncFailure. */
  readonly signal: AbortSignal
  /** Lifts the deletion gate for this run. */
  readonly allowDeletions: boolean
}

/**
 * Reads the directory and computes the changes. Members are staged for `job`; without one nothing is written. Resolves to
 * the changes with their report, and the `fault` that blocks them without `--allow-deletions`.
 * @throws {SyncFailure} if the directory cannot be read completely.
 */
export async function prepareSync(
  accountId: string,
  { signal, allowDeletions }: SyncOptions,
  dependencies: SyncDependencies,
  job?: Job,
) {
  const { store, limits, clock } = dependencies
  const connection = await findConnection(store, accountId)
  if (connection === undefined) throw connectionChanged()
  const stored = await readStoredGroups(store, accountId)
  const living = stored.filter(isLiving)
  const byId = new Map(stored.map((group) => [group.scim_id, group]))
  const byOtherId = byExternalId(living)
  await using client = new DirectoryClient(connection, signal, dependencies)
  const directory = new Directory({
    client,
    limits,
    connection,
    isTrial: false,
    stage: new MemberStage(store, job),
    findFormer: ({ scim_id, external_id }) => byId.get(scim_id) ?? byOtherId.get(external_id ?? ''),
  })
  const { groups } = directory
  const walk = await directory.read()
  const absent = living.map(({ scim_id }) => scim_id).filter((id) => !groups.has(id))
  // An empty directory alone stops the sync, so absent groups are not confirmed.
  const mayConfirm = groups.size > 0 || allowDeletions
  const staying = await directory.findStaying(walk, mayConfirm ? absent : [])
  const changes = await planSync(stored, groups, staying, clock())
  const report = reportOf(changes, directory.warnings())
  const fault = allowDeletions ? undefined : deletionFault(stored, groups, changes, connection)
  // Groups present after the sync: also unlisted ones that stay.
  const present = living.length + report.groups_added.count - report.groups_deleted.count
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
  const stage = new MemberStage(store, undefined)
  const findFormer = () => undefined
  const directory = new Directory({ client, limits, connection, isTrial: true, stage, findFormer })
  const { query, total, isEndStated } = await directory.read()
  const groups = [...directory.groups.values()]
  const withMembers = groups.filter(({ members }) => Number(members?.member_count) > 0)
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
  const { store } = dependencies
  const prepared = await prepareSync(job.account_id, options, dependencies, job)
  const { connection, changes, report, fault, present } = prepared
  if (fault !== undefined) throw fault
  const deleted_groups = report.groups_deleted.count
  return await store.transaction(async (queries) => {
    options.signal.throwIfAborted()
    await applyPlan(queries, job.account_id, changes)
    // Last, since these lock the rows of the connection and the job: if one has changed, everything is rolled back.
    if (!(await holdConnection(queries, connection))) throw connectionChanged()
    const ended = await runner.end(job, { synced_groups: present, deleted_groups, report }, queries)
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
