import type { Queries } from '../../store/store.ts'
import { readMemberIds } from '../groups/group-store.ts'
import type { Change } from './plan.ts'

/**
 * How many members go from groups that stay, whoever comes in their place. Only groups whose list of members is another
 * one are compared, one at a time: all lists at once would take more memory than all else of a sync.
 * @throws the reason of `signal` when that aborts.
 */
export async function countRemovedMembers(
  queries: Queries,
  changes: readonly Change[],
  signal: AbortSignal,
): Promise<number> {
  let leaving = 0
  for (const { local, remote, withMembers } of changes) {
    if (!withMembers || local === null || local.deleted || local.memberCount === 0) continue
    signal.throwIfAborted()
    const staying = new Set(remote.members?.read().map(({ id }) => id))
    const former = await readMemberIds(queries, local.id)
    leaving += former.filter((id) => !staying.has(id)).length
  }
  return leaving
}
