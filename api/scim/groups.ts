/**
 * The synced groups and their lists of members in the store. A list never changes: a sync stages a new one beside it, and
 * its last transaction makes the group refer to the new one. Lists that no group refers to are swept.
 */
import { hash, randomUUIDv7 } from 'node:crypto'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { z } from 'zod'
import { insertRows, type Queries, type Store, type Value } from '../store/store.ts'
import { lostJob } from './failures.ts'
import { lockJob, selectPage, type Job, type PageWanted } from './job-store.ts'
import { memberSchema, type Member } from './messages.ts'
import {
  addTo,
  storedGroupSchema,
  type FindFormer,
  type Identity,
  type RemoteGroup,
  type Report,
  type StoredGroup,
} from './plan.ts'

/** A group for the account's administrators (CONTRACT 5); `external_id` is the directory's id. */
export const groupRowSchema = z.object({
  id: z.string(),
  organization_id: z.string(),
  external_id: z.string(),
  display_name: z.string(),
  member_count: z.int().nonnegative().nullable().describe('Null if the directory never supplied members.'),
  created_at: z.string(),
  updated_at: z.string(),
})

/** Members that one transaction writes or deletes: as many as block nobody. */
const MEMBERS_AT_ONCE = 2000

const SHOWN =
  'id, account_id AS organization_id, scim_id AS external_id, display_name, member_count, created_at, updated_at'
const LIVING = 'scim_groups WHERE account_id = $1 AND deleted_at IS NULL'
const SHOWN_MEMBERS = `
  SELECT m.member_id AS id, m.type, m.display_name
  FROM scim_groups AS g JOIN scim_members AS m ON m.list_id = g.member_list
  WHERE g.id = $1 ORDER BY m.member_id LIMIT $2 OFFSET $3`

/** The current groups of an account, oldest first, and their total. */
export async function listGroups(queries: Queries, accountId: string, page: PageWanted) {
  const rows = { select: SHOWN, from: LIVING, order: 'created_at, id', schema: groupRowSchema }
  return await selectPage(queries, accountId, page, rows)
}

/** A current group of the account. */
export async function findGroup(queries: Queries, accountId: string, id: string) {
  const [row] = await queries.query(`SELECT ${SHOWN} FROM ${LIVING} AND id = $2`, [accountId, id])
  return row === undefined ? undefined : groupRowSchema.parse(row)
}

/** The members of a group of the account, undefined without it; their total is null if the directory never sent any. */
export async function listMembers(queries: Queries, accountId: string, id: string, page: PageWanted) {
  const group = await findGroup(queries, accountId, id)
  if (group === undefined) return undefined
  const rows = await queries.query(SHOWN_MEMBERS, [id, page.limit, page.offset])
  return { data: z.array(memberSchema).parse(rows), total_count: group.member_count }
}

const COLUMNS = storedGroupSchema.keyof().options
/** Groups that one statement reads: as many as block nobody. */
const GROUPS_AT_ONCE = 1000
const STORED = `
  SELECT ${COLUMNS.join(', ')} FROM scim_groups
  WHERE account_id = $1 AND scim_id > $2 ORDER BY scim_id LIMIT ${GROUPS_AT_ONCE}`
const MEMBER_NAMES = `
  SELECT member_id AS id, coalesce(display_name, member_id) AS name FROM scim_members
  WHERE list_id = $1 ORDER BY member_id`

/** All groups of an account, including deleted ones. */
export async function readStoredGroups(queries: Queries, accountId: string): Promise<readonly StoredGroup[]> {
  const groups: StoredGroup[] = []
  for (let rows = GROUPS_AT_ONCE; rows === GROUPS_AT_ONCE; await endOfTurn()) {
    const page = await queries.query(STORED, [accountId, groups.at(-1)?.scim_id ?? ''])
    groups.push(...z.array(storedGroupSchema).parse(page))
    rows = page.length
  }
  return groups
}

const LISTS = { table: 'scim_member_lists', columns: ['id', 'account_id', 'job_id'] }
const MEMBERS = { table: 'scim_members', columns: ['list_id', 'member_id', 'type', 'display_name'] }

const namesSchema = z.array(z.object({ id: z.string(), name: z.string() }))

/**
 * Compares lists of members with the stored ones, and stages those that differ.
 * @param report receives who joined and left.
 * @param job without one (a dry run) nothing is written.
 */
export function createMemberStage(store: Store, findFormer: FindFormer, report: Report, job?: Job) {
  let stagedLists: Value[][] = []
  let stagedRows: Value[][] = []

  /** Reports who joined a stored list, and who left it. */
  async function compare(members: readonly Member[], stored: string | null | undefined, group: string) {
    const rows = stored ? await store.query(MEMBER_NAMES, [stored]) : []
    const former = new Map(namesSchema.parse(rows).map(({ id, name }) => [id, name]))
    for (const { id, display_name } of members) {
      if (!former.delete(id)) addTo(report.members_joined, display_name ?? id, group)
    }
    for (const name of former.values()) addTo(report.members_left, name, group)
  }

  /** Resolves to the id of the new list; null for an empty one. */
  async function add(members: readonly Member[]): Promise<string | null> {
    if (members.length === 0 || job === undefined) return null
    const listId = randomUUIDv7()
    stagedLists.push([listId, job.account_id, job.id])
    for (const { id, type, display_name } of members) {
      stagedRows.push([listId, id, type, display_name])
      if (stagedRows.length >= MEMBERS_AT_ONCE) await flush()
    }
    return listId
  }

  /**
   * Writes what has been added, in one short transaction.
   * @throws SyncFailure if the job is over: then its lists may have been swept, and nothing would sweep further members.
   */
  async function flush(): Promise<void> {
    const [lists, rows] = [stagedLists, stagedRows]
    if (job === undefined || lists.length + rows.length === 0) return
    stagedLists = []
    stagedRows = []
    await store.transaction(async (queries) => {
      if (!(await lockJob(queries, job.id))) throw lostJob()
      await insertRows(queries, LISTS, lists)
      await insertRows(queries, MEMBERS, rows)
    })
  }

  return {
    flush,
    /** Whether the stored group has members. */
    hadMembers: (group: Identity) => Number(findFormer(group)?.member_count) > 0,
    /** Takes the members of a group; resolves to their columns. A staged list is written after `flush`. */
    async take(received: readonly Member[], group: RemoteGroup) {
      // So that thousands of groups leave others their turn.
      await endOfTurn()
      const former = findFormer(group)
      // Sorted by code units, which give the same order on every machine. Of repeated members the last one counts.
      const sorted = received.toSorted((a, b) => (a.id < b.id ? -1 : Number(a.id > b.id)))
      const members = sorted.filter(({ id }, index) => id !== sorted[index + 1]?.id)
      const member_count = members.length
      const text = JSON.stringify(members.flatMap(({ id, type, display_name }) => [id, type, display_name]))
      const member_digest = member_count === 0 ? '' : hash('sha256', text, 'base64url')
      if (member_digest === former?.member_digest)
        return { member_digest, member_count, member_list: former.member_list }
      await compare(members, former?.member_list, `${group.display_name}: `)
      return { member_digest, member_count, member_list: await add(members) }
    },
  }
}
export type MemberStage = ReturnType<typeof createMemberStage>

const GROUPS = {
  table: 'scim_groups',
  columns: ['account_id', ...COLUMNS],
  after: `ON CONFLICT (id) DO UPDATE SET ${COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ')}`,
}

/** Writes these groups of an account. */
export async function writeGroups(queries: Queries, accountId: string, groups: readonly StoredGroup[]) {
  const rows = groups.map((row) => [accountId, ...COLUMNS.map((column) => row[column])])
  await insertRows(queries, GROUPS, rows)
}

// The lists of an open job are not switched yet.
const UNUSED_LISTS = `
  SELECT l.id FROM scim_member_lists AS l
  WHERE l.account_id = $1 AND NOT EXISTS (SELECT 1 FROM scim_groups AS g WHERE g.member_list = l.id)
    AND NOT EXISTS (SELECT 1 FROM scim_sync_jobs AS j WHERE j.id = l.job_id AND j.status IN ('queued', 'running'))
  LIMIT 100`
const SWEEP_MEMBERS = `
  DELETE FROM scim_members WHERE list_id = $1 AND member_id IN (
    SELECT member_id FROM scim_members WHERE list_id = $1 LIMIT ${MEMBERS_AT_ONCE}) RETURNING 1 AS swept`

/** Deletes the lists of members that no group of the account refers to, in small steps. */
export async function sweepMembers(store: Store, accountId: string): Promise<void> {
  for (;;) {
    const lists = await store.query(UNUSED_LISTS, [accountId])
    if (lists.length === 0) return
    for (const { id } of z.array(z.object({ id: z.string() })).parse(lists)) {
      // SQLite answers within the turn.
      while ((await store.query(SWEEP_MEMBERS, [id])).length === MEMBERS_AT_ONCE) await endOfTurn()
      await store.query('DELETE FROM scim_member_lists WHERE id = $1', [id])
      await endOfTurn()
    }
  }
}

const ERASE = 'DELETE FROM scim_groups WHERE account_id = $1 RETURNING member_count AS count'

/** Deletes all groups of an account; resolves to the numbers of groups and memberships. */
export async function eraseGroups(queries: Queries, accountId: string) {
  const rows = await queries.query(ERASE, [accountId])
  const counts = z.array(z.object({ count: z.number().nullable() })).parse(rows)
  return { groups: rows.length, members: counts.reduce((sum, { count }) => sum + (count ?? 0), 0) }
}
