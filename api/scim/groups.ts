/**
 * The synced groups and their lists of members in the store. A list never changes: a sync stages a new one beside it, and
 * its last transaction makes the group refer to the new one. Lists that no group refers to are swept.
 */
import { hash, randomUUID } from 'node:crypto'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { z } from 'zod'
import type { Queries, Store, Value } from '../store/store.ts'
import type { Member } from './messages.ts'
import { NO_MEMBERS, localGroupSchema, partOf, type LocalGroup, type MemberList, type Plan } from './plan.ts'

export interface PageWanted {
  readonly limit: number
  readonly offset: number
}

/** A group for the account's administrators (CONTRACT 5); `external_id` is the directory's id. */
export const groupRowSchema = z.object({
  id: z.string(),
  organization_id: z.string(),
  external_id: z.string(),
  display_name: z.string(),
  member_count: z.number().nullable().describe('Null if the directory never supplied members of the group.'),
  created_at: z.string(),
  updated_at: z.string(),
})

export const memberRowSchema = z.object({
  id: z.string(),
  type: z.string().nullable(),
  display_name: z.string().nullable(),
})

const ROWS_AT_ONCE = 1000

const LOCAL_GROUPS = `
  SELECT id, scim_id AS "scimId", external_id AS "externalId", display_name AS "displayName",
    member_digest AS "memberDigest", member_count AS "memberCount", member_list AS "memberList",
    created_at AS "createdAt", CASE WHEN deleted_at IS NULL THEN 0 ELSE 1 END AS "isDeleted"
  FROM scim_groups WHERE account_id = $1 AND scim_id > $2 ORDER BY scim_id LIMIT ${ROWS_AT_ONCE}`
const SHOWN = `
  SELECT id, account_id AS organization_id, scim_id AS external_id, display_name, member_count, created_at, updated_at
  FROM scim_groups WHERE account_id = $1 AND deleted_at IS NULL`
const LIST = `${SHOWN} ORDER BY created_at, id LIMIT $2 OFFSET $3`
const FIND = `${SHOWN} AND id = $2`
const COUNT = 'SELECT count(*) AS total FROM scim_groups WHERE account_id = $1 AND deleted_at IS NULL'
const MEMBERS = `
  SELECT m.member_id AS id, m.type, m.display_name
  FROM scim_groups AS g JOIN scim_members AS m ON m.list_id = g.member_list
  WHERE g.id = $1 ORDER BY m.member_id LIMIT $2 OFFSET $3`
const MEMBER_NAMES = `
  SELECT member_id AS id, display_name AS name FROM scim_members
  WHERE list_id = $1 AND member_id > $2 ORDER BY member_id LIMIT ${ROWS_AT_ONCE}`
const WRITE_GROUPS = (rows: string) => `
  INSERT INTO scim_groups (id, account_id, scim_id, external_id, display_name, member_digest, member_count,
    member_list, created_at, updated_at, deleted_at)
  VALUES ${rows}
  ON CONFLICT (id) DO UPDATE SET
    scim_id = excluded.scim_id, external_id = excluded.external_id, display_name = excluded.display_name,
    member_digest = excluded.member_digest, member_count = excluded.member_count, member_list = excluded.member_list,
    updated_at = excluded.updated_at, deleted_at = excluded.deleted_at`
const ADD_LISTS = (rows: string) => `INSERT INTO scim_member_lists (id, account_id, job_id) VALUES ${rows}`
const ADD_MEMBERS = (rows: string) => `
  INSERT INTO scim_members (list_id, member_id, type, display_name) VALUES ${rows}`
// The lists of an open job are not switched yet.
const UNUSED_LISTS = `
  SELECT l.id FROM scim_member_lists AS l
  WHERE l.account_id = $1 AND NOT EXISTS (SELECT 1 FROM scim_groups AS g WHERE g.member_list = l.id)
    AND NOT EXISTS (SELECT 1 FROM scim_sync_jobs AS j WHERE j.id = l.job_id AND j.status IN ('queued', 'running'))
  LIMIT 100`
const SWEEP_MEMBERS = `
  DELETE FROM scim_members WHERE list_id = $1 AND member_id IN (
    SELECT member_id FROM scim_members WHERE list_id = $1 LIMIT ${ROWS_AT_ONCE}) RETURNING 1 AS swept`
const SWEEP_LIST = 'DELETE FROM scim_member_lists WHERE id = $1'
const ERASE = 'DELETE FROM scim_groups WHERE account_id = $1 RETURNING member_count AS count'

/** All groups of an account, including deleted ones. */
export async function readLocalGroups(queries: Queries, accountId: string): Promise<readonly LocalGroup[]> {
  const groups: LocalGroup[] = []
  for (;;) {
    const rows = await queries.query(LOCAL_GROUPS, [accountId, groups.at(-1)?.scimId ?? ''])
    groups.push(...z.array(localGroupSchema).parse(rows))
    if (rows.length < ROWS_AT_ONCE) return groups
    await endOfTurn()
  }
}

/** The current groups of an account, oldest first, and their total. */
export async function listGroups(queries: Queries, accountId: string, { limit, offset }: PageWanted) {
  const rows = await queries.query(LIST, [accountId, limit, offset])
  const [count] = await queries.query(COUNT, [accountId])
  return {
    data: z.array(groupRowSchema).parse(rows),
    total_count: z.object({ total: z.number() }).parse(count).total,
  }
}

/** A current group of the account. */
export async function findGroup(queries: Queries, accountId: string, id: string) {
  const [row] = await queries.query(FIND, [accountId, id])
  return row === undefined ? undefined : groupRowSchema.parse(row)
}

/**
 * The members of a group of the account; undefined without such a group. The total is null if the directory never
 * supplied members, so that "unknown" differs from "none".
 */
export async function listMembers(
  queries: Queries,
  accountId: string,
  id: string,
  { limit, offset }: PageWanted,
) {
  const group = await findGroup(queries, accountId, id)
  if (group === undefined) return undefined
  const rows = await queries.query(MEMBERS, [id, limit, offset])
  return { data: z.array(memberRowSchema).parse(rows), total_count: group.member_count }
}

/** Memberships per transaction, to keep it short. */
const STAGED_AT_ONCE = 2000

export type MemberStage = ReturnType<typeof createMemberStage>

/** Stages lists of members for a job. `hold` runs in each transaction; it throws if the sync may not go on. */
export function createMemberStage(
  store: Store,
  job: { readonly id: string; readonly accountId: string },
  hold: (queries: Queries) => Promise<void>,
) {
  let lists: Value[][] = []
  let rows: Value[][] = []

  /** Writes what has been added, in one short transaction. */
  async function flush(): Promise<void> {
    const [newLists, newRows] = [lists, rows]
    if (newLists.length + newRows.length === 0) return
    lists = []
    rows = []
    await store.transaction(async (queries) => {
      await hold(queries)
      await inBatches(queries, newLists, ADD_LISTS)
      await inBatches(queries, newRows, ADD_MEMBERS)
    })
  }

  return {
    flush,
    /** Stages a list; resolves to its id. It is written after `flush`. */
    async add(members: readonly Member[]): Promise<string> {
      const listId = randomUUID()
      lists.push([listId, job.accountId, job.id])
      for (const { id, type, displayName } of members) {
        rows.push([listId, id, type, displayName])
        if (rows.length >= STAGED_AT_ONCE) await flush()
      }
      return listId
    },
  }
}

/** Members between two turns of the event loop. */
const PER_TURN = 5000

/**
 * Compares the members of a group with the stored ones, and stages them if they differ; without a stage (a dry run)
 * nothing is written. No members are `none`, unless the group had some.
 */
export async function takeMembers(
  received: readonly Member[],
  local: LocalGroup | undefined,
  queries: Queries,
  stage: MemberStage | undefined,
): Promise<MemberList | 'none'> {
  const former = local?.memberCount ?? 0
  if (received.length === 0 && former === 0) return 'none'
  const members = sortUnique(received)
  const text = JSON.stringify(members.flatMap(({ id, type, displayName }) => [id, type, displayName]))
  const digest = members.length === 0 ? '' : hash('sha256', text, 'base64url')
  if (digest === local?.memberDigest) {
    return { ...NO_MEMBERS, digest, count: members.length, listId: local.memberList }
  }
  await endOfTurn()
  const differences = await compare(members, local?.memberList ?? null, queries)
  if (members.length === 0 || stage === undefined)
    return { digest, count: members.length, listId: null, ...differences }
  return { digest, count: members.length, listId: await stage.add(members), ...differences }
}

/** Who joined a stored list and who left it. */
async function compare(members: readonly Member[], listId: string | null, queries: Queries) {
  const left = listId === null ? new Map<string, string>() : await readMemberNames(queries, listId)
  const joined: string[] = []
  for (const [index, { id, displayName }] of members.entries()) {
    if (!left.delete(id)) joined.push(displayName ?? id)
    if (index % PER_TURN === PER_TURN - 1) await endOfTurn()
  }
  return { joined: partOf(joined), left: partOf([...left.values()]) }
}

/** Sorted by code units, which give the same order on every machine. Of repeated members the last one counts. */
function sortUnique(members: readonly Member[]): readonly Member[] {
  const sorted = members.toSorted((a, b) => (a.id < b.id ? -1 : Number(a.id > b.id)))
  return sorted.filter(({ id }, index) => id !== sorted[index + 1]?.id)
}

const nameSchema = z.object({ id: z.string(), name: z.string().nullable() })

/** The names of the members of a list, by their ids. */
async function readMemberNames(queries: Queries, listId: string): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  for (let after = ''; ;) {
    const rows = z.array(nameSchema).parse(await queries.query(MEMBER_NAMES, [listId, after]))
    for (const { id, name } of rows) names.set(id, name ?? id)
    if (rows.length < ROWS_AT_ONCE) return names
    after = rows.at(-1)?.id ?? ''
    await endOfTurn()
  }
}

/** Writes what a plan changes. Deleted groups keep their row, so that they get their id back, but no members. */
export async function applyPlan(
  queries: Queries,
  accountId: string,
  { changes, deletions }: Plan,
  now: Date,
): Promise<void> {
  const time = now.toISOString()
  const changed = changes.map(({ id, local, remote, members }) => {
    const { scimId, externalId, displayName } = remote
    const list =
      members === null
        ? [local?.memberDigest ?? null, local?.memberCount ?? null, local?.memberList ?? null]
        : [members.digest, members.count, members.listId]
    return [id, accountId, scimId, externalId, displayName, ...list, local?.createdAt ?? time, time, null]
  })
  const deleted = deletions.map(({ id, scimId, externalId, displayName, createdAt }) => {
    return [id, accountId, scimId, externalId, displayName, null, null, null, createdAt, time, time]
  })
  // In index order, so that the index is written sequentially.
  const rows = [...changed, ...deleted].toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1))
  await inBatches(queries, rows, WRITE_GROUPS)
}

/** Deletes the lists of members that no group of the account refers to, in small steps. */
export async function sweepMembers(store: Store, accountId: string): Promise<void> {
  for (;;) {
    const lists = z.array(z.object({ id: z.string() })).parse(await store.query(UNUSED_LISTS, [accountId]))
    if (lists.length === 0) return
    for (const { id } of lists) {
      while ((await store.query(SWEEP_MEMBERS, [id])).length === ROWS_AT_ONCE) await endOfTurn()
      await store.query(SWEEP_LIST, [id])
      // SQLite answers within the turn.
      await endOfTurn()
    }
  }
}

/** Deletes all groups of an account; resolves to the numbers of groups and memberships. */
export async function eraseGroups(queries: Queries, accountId: string) {
  const rows = await queries.query(ERASE, [accountId])
  const counts = z.array(z.object({ count: z.number().nullable() })).parse(rows)
  return { groups: rows.length, members: counts.reduce((sum, { count }) => sum + (count ?? 0), 0) }
}

// Batch sizes; few sizes mean few different statements to prepare.
const BATCHES = [100, 10, 1] as const

/**
 * Runs a statement per batch of rows. `sql` receives the placeholders of the rows, such as `($1, $2), ($3, $4)`. The
 * event loop gets its turn between batches.
 */
async function inBatches(
  queries: Queries,
  rows: readonly (readonly Value[])[],
  sql: (placeholders: string) => string,
): Promise<void> {
  let done = 0
  for (const size of BATCHES) {
    for (; rows.length - done >= size; done += size) {
      const batch = rows.slice(done, done + size)
      const values = batch.flat()
      const places = batch.map(
        (row, at) => `(${row.map((_, column) => `$${at * row.length + column + 1}`).join(', ')})`,
      )
      await queries.query(sql(places.join(', ')), values)
      await endOfTurn()
    }
  }
}
