/** One sync of one account: the directory is read, the change worked out and judged, and written in one step. */
import type { Queries, Store } from '../../store/store.ts'
import type { Resolve } from '../directory/http/addresses.ts'
import { applyWork, type Work } from './apply.ts'
import { findConnection, holdConnection, type Connection } from '../directory/connection-store.ts'
import { deletionFault, exceedsGate } from './deletion-gate.ts'
import { createDirectoryClient, pauseFor, type DirectoryClient, type Wait } from '../directory/http/client.ts'
import { SyncFailure } from '../failures.ts'
import { readLocalGroups } from '../groups/group-store.ts'
import { findRemovals, type Removals } from './removals.ts'
import type { SyncLimits } from '../directory/limits.ts'
import type { SyncObserver } from '../observer.ts'
import { goneIn, planSync, type Plan } from './plan.ts'
import { pull } from '../directory/pull.ts'
import { readToken, type Environment } from '../directory/token.ts'
import type { Progress } from '../directory/walk.ts'

/** What a sync is handed. */
export interface SyncDependencies {
  readonly environment: Environment
  readonly limits: SyncLimits
  readonly wait?: Wait
  readonly resolve?: Resolve
  readonly observer?: SyncObserver
}

/** How one sync is made. */
export interface SyncOptions {
  /** Ends it; the reason is a SyncFailure. */
  readonly signal: AbortSignal
  readonly progress: Progress
  /** The operator's leave, for this run alone, to delete as much as the directory's answer says. */
  readonly allowDeletions: boolean
  /** Runs a pause that the directory asks for, in which the sync does nothing else. */
  readonly whilePausing?: <Result>(pause: () => Promise<Result>) => Promise<Result>
}

/** A plan, and what keeps it from being carried out without the operator's leave. */
export interface Prepared {
  readonly connection: Connection
  readonly plan: Plan
  readonly fault: SyncFailure | undefined
  /** False when the directory gave no total, so that nothing may count as deleted. */
  readonly complete: boolean
  /** Members who leave groups that stay. */
  readonly removals: Removals
  /** What was left out or read otherwise than it was sent, one sentence a kind. */
  readonly warnings: readonly string[]
}

/** A client of the directory that a connection leads to; close it after use. */
export function connect(
  { url, reach, token }: Connection,
  { signal, whilePausing = (pause) => pause() }: Pick<SyncOptions, 'signal' | 'whilePausing'>,
  dependencies: SyncDependencies,
): DirectoryClient {
  const { wait = pauseFor } = dependencies
  return createDirectoryClient({
    ...dependencies,
    wait: (milliseconds, aborted) => whilePausing(() => wait(milliseconds, aborted)),
    url,
    reach,
    token: readToken(token, dependencies.environment),
    signal,
  })
}

/**
 * Reads the directory and works out what would change; writes nothing.
 * @throws {SyncFailure} when the directory cannot be read whole.
 */
export async function prepareSync(
  store: Store,
  accountId: string,
  options: SyncOptions,
  dependencies: SyncDependencies,
): Promise<Prepared> {
  const connection = await findConnection(store, accountId)
  if (connection === undefined) throw changed()
  const client = connect(connection, options, dependencies)
  try {
    const directory = await pull({
      client,
      limits: dependencies.limits,
      members: connection.members,
      progress: options.progress,
      mayMiss: (groups, all) => !exceedsGate(groups, all, connection.gate),
    })
    const local = await readLocalGroups(store, accountId)
    const planNow = (mayDelete: boolean) =>
      planSync(local, directory.groups.values(), {
        mayDelete,
        trustEmptiness: options.allowDeletions,
        unlisted: directory.unlisted,
      })
    const first = planNow(directory.complete)
    // A directory that has nothing at all is not asked again for what it had: that alone is reason to stop.
    const mayConfirm = directory.groups.size > 0 || options.allowDeletions
    const complete = mayConfirm ? await directory.confirmAbsent(goneIn(first)) : directory.complete
    const plan = planNow(complete)
    const removals = await findRemovals(store, plan.changes, options.signal)
    const fault = options.allowDeletions ? undefined : deletionFault(plan, removals.count, connection.gate)
    return { connection, plan, fault, complete, removals, warnings: directory.warnings.lines() }
  } finally {
    await client.close()
  }
}

/**
 * Writes the work of a plan, unless the connection is no longer the one it was made under.
 * @throws {SyncFailure} `connection_changed`.
 */
export async function carryOut(
  queries: Queries,
  connection: Connection,
  { work, staged, now }: { readonly work: Work; readonly staged: ReadonlySet<string>; readonly now: Date },
): Promise<void> {
  await applyWork(queries, work, { accountId: connection.accountId, now, staged })
  // Last, since it locks the row: what changed meanwhile undoes the plan, what changes from now on comes after it.
  if (!(await holdConnection(queries, connection))) throw changed()
}

function changed(): SyncFailure {
  return new SyncFailure('connection_changed', 'the connection is no longer the one the sync began with')
}
