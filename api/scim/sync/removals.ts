import type { Queries } from '../../store/store.ts'
import { readMemberIds } from '../groups/group-store.ts'
import type { Change } from './plan.ts'

/** Members removed from groups that stay; added members do not offset them. */
export interface Removals {
  readonly count: number
  /** By local group id: the number of removed members, and the first of them. */
  readonly byGroup: ReadonlyMap<string, { readonly count: number; readonly first: readonly string[] }>
}

/** Removed members that are listed per group. */
const NAMED = 10

/**
 * Finds removed members. Only changed lists are compared, one group at a time: all at once would take more memory than
 * the rest of a sync.
 * @throws the reason of an aborted `signal`.
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
