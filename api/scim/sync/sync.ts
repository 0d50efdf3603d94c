/** One sync of one account: reads the directory, plans and checks the change, and writes it in one transaction. */
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

export interface SyncDependencies {
  readonly environment: Environment
  readonly limits: SyncLimits
  readonly wait?: Wait
  readonly resolve?: Resolve
  readonly observer?: SyncObserver
}

export interface SyncOptions {
  /** Ends the sync; its reason is a SyncFailure. */
  readonly signal: AbortSignal
  readonly progress: Progress
  /** Lifts the deletion gate for this run. */
  readonly allowDeletions: boolean
  /** Runs a pause that the directory demands; the sync does nothing else meanwhile. */
  readonly whilePausing?: <Result>(pause: () => Promise<Result>) => Promise<Result>
}

/** A plan, and the failure that blocks it without `--allow-deletions`. */
export interface Prepared {
  readonly connection: Connection
  readonly plan: Plan
  readonly fault: SyncFailure | undefined
  /** False if the directory gave no total, so that nothing counts as deleted. */
  readonly complete: boolean
  /** Members removed from groups that stay. */
  readonly removals: Removals
  /** A sentence for each kind of input that was interpreted or left out. */
  readonly warnings: readonly string[]
}

/** A client of a connection's directory; close it after use. */
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
 * Reads the directory and computes the changes; writes nothing.
 * @throws {SyncFailure} if the directory cannot be read completely.
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
    // An empty directory alone stops the sync, so absent groups are not confirmed.
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
 * Writes the work of a plan, unless its connection has changed.
 * @throws {SyncFailure} `connection_changed`.
 */
export async function carryOut(
  queries: Queries,
  connection: Connection,
  { work, staged, now }: { readonly work: Work; readonly staged: ReadonlySet<string>; readonly now: Date },
): Promise<void> {
  await applyWork(queries, work, { accountId: connection.accountId, now, staged })
  // Last, since it locks the row: an earlier change undoes the plan, a later one waits.
  if (!(await holdConnection(queries, connection))) throw changed()
}

function changed(): SyncFailure {
  return new SyncFailure('connection_changed', 'the connection has changed since the sync began')
}
