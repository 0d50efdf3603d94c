import { z } from 'zod'
import { OperatorError } from '../http/errors.ts'
import type { Store } from '../store/store.ts'
import { removeConnection } from './connections.ts'
import { eraseGroups, sweepMembers } from './groups.ts'
import { hasOpenJob } from './job-store.ts'

const ACCOUNT = 'SELECT id FROM accounts WHERE name = $1'

/**
 * Removes the connection of an account and all its groups, deleted ones included.
 * @returns the number of erased groups and memberships.
 * @throws {OperatorError} if there is no such account, or a sync of it is in progress.
 */
export async function eraseDirectory(store: Store, name: string) {
  const [found] = await store.query(ACCOUNT, [name])
  if (found === undefined)
    throw new OperatorError(`There is no account "${name}": npm run -s keys -- list shows them`)
  const { id } = z.object({ id: z.string() }).parse(found)
  const erased = await store.transaction(async (queries) => {
    // First, since a sync ends by locking the connection.
    await removeConnection(queries, name)
    if (await hasOpenJob(queries, id)) {
      throw new OperatorError(`A sync of account "${name}" is in progress: erase again once it has ended`)
    }
    return await eraseGroups(queries, id)
  })
  await sweepMembers(store, id)
  return erased
}
