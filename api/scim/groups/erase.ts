/** Erases the stored data of groups that are not shown, including member names. */
import { z } from 'zod'
import type { Store } from '../../store/store.ts'
import { OperatorError } from '../../http/errors.ts'

const ACCOUNT = `
  SELECT a.id, count(c.account_id) AS connections FROM accounts AS a
  LEFT JOIN scim_connections AS c ON c.account_id = a.id WHERE a.name = $1 GROUP BY a.id`
const OPEN_JOBS = `
  SELECT count(*) AS total FROM scim_sync_jobs WHERE account_id = $1 AND status IN ('queued', 'running')`
const HIDDEN_GROUPS =
  'SELECT id FROM scim_groups WHERE account_id = $1 AND (deleted_at IS NOT NULL OR $2 = 0)'
const COUNT_MEMBERS = `SELECT count(*) AS total FROM scim_members WHERE group_id IN (${HIDDEN_GROUPS})`
const ERASE_MEMBERS = `DELETE FROM scim_members WHERE group_id IN (${HIDDEN_GROUPS})`
const ERASE_GROUPS = `DELETE FROM scim_groups WHERE id IN (${HIDDEN_GROUPS}) RETURNING id`
// A sync that has read these groups and starts to write fails, since its connection has changed.
const TOUCH = 'UPDATE scim_connections SET updated_at = $2 WHERE account_id = $1'

const accountSchema = z.object({ id: z.string(), connections: z.number() })
const totalSchema = z.object({ total: z.number() })

/**
 * Erases the deleted groups of an account, and all its groups if it has no connection.
 * @returns the number of erased groups and memberships.
 * @throws {OperatorError} if there is no such account, or a sync of it is in progress.
 */
export async function eraseHiddenGroups(
  store: Store,
  name: string,
  now: Date,
): Promise<{ readonly groups: number; readonly members: number }> {
  return await store.transaction(async (queries) => {
    const [found] = await queries.query(ACCOUNT, [name])
    if (found === undefined)
      throw new OperatorError(`There is no account "${name}": npm run -s keys -- list shows them`)
    const { id, connections } = accountSchema.parse(found)
    const [jobs] = await queries.query(OPEN_JOBS, [id])
    if (totalSchema.parse(jobs).total > 0) {
      throw new OperatorError(`A sync of account "${name}" is in progress: erase again once it has ended`)
    }
    await queries.query(TOUCH, [id, now.toISOString()])
    const [members] = await queries.query(COUNT_MEMBERS, [id, connections])
    await queries.query(ERASE_MEMBERS, [id, connections])
    const groups = await queries.query(ERASE_GROUPS, [id, connections])
    return { groups: groups.length, members: totalSchema.parse(members).total }
  })
}
