import type { Queries } from '../../store/store.ts'
import { readMemberIds } from '../groups/group-store.ts'
import type { Change } from './plan.ts'

/** Members that leave groups that stay, whoever comes in their place. */
export interface Removals {
  readonly count: number
  /** By the id of the local group: how many leave it, and the first of them. */
  readonly byGroup: ReadonlyMap<string, { readonly count: number; readonly first: readonly string[] }>
}

/** So many of the members that leave a group are named. */
const NAMED = 10

/**
 * Finds the members that leave. Only groups whose list of members is another one are compared, one at a time: all
 * lists at once would take more memory than all else of a sync.
 * @throws the reason of `signal` when that aborts.
 */
export async function findRemovals(
  queries: Queries,
  changes: readonly Change[],
  signal: AbortSignal,
): Promise<Removals> {
  const byGroup = new Map<string, { count: number; first: string[] }>()
  let count = 0
  for (const { local, remote, withMembers } of changes) {
    if (!withMembers || local === null || local.deleted || local.memberCount === 0) continue
    signal.throwIfAborted()
    const staying = new Set(remote.members?.read().map(({ id }) => id))
    const former = await readMemberIds(queries, local.id)
    const removed = former.filter((id) => !staying.has(id))
    count += removed.length
    if (removed.length > 0) byGroup.set(local.id, { count: removed.length, first: removed.slice(0, NAMED) })
  }
  return { count, byGroup }
}
