/**
 * The synced groups and their lists of members in the store. A list never changes: a sync stages a new one beside it, and
 * its last transaction makes the group refer to the new one. Lists that no group refers to are swept.
 */
import { z } from 'zod'
import type { Queries, Store } from '../store/store.ts'
import { inBatches, type Row } from './batches.ts'
import type { Member } from './messages.ts'
import type { LocalGroup } from './group.ts'
import type { Plan } from './plan.ts'

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

const localGroupSchema = z
  .object({
    id: z.string(),
    scim_id: z.string(),
    external_id: z.string().nullable(),
    display_name: z.string(),
    member_digest: z.string().nullable(),
    member_count: z.number().nullable(),
    member_list: z.string().nullable(),
    created_at: z.string(),
    deleted_at: z.string().nullable(),
  })
  .transform((row): LocalGroup => ({
    id: row.id,
    scimId: row.scim_id,
    externalId: row.external_id,
    displayName: row.display_name,
    memberDigest: row.member_digest,
    memberCount: row.member_count,
    memberList: row.member_list,
    createdAt: row.created_at,
    deleted: row.deleted_at !== null,
  }))

const ROWS_AT_ONCE = 1000

const LOCAL_GROUPS = `
  SELECT id, scim_id, external_id, display_name, member_digest, member_count, member_list, created_at, deleted_at
  FROM scim_groups WHERE account_id = $1 AND scim_id > $2 ORDER BY scim_id LIMIT ${ROWS_AT_ONCE}`
const SHOWN = `
  SELECT id, account_id AS organization_id, scim_id AS external_id, display_name, member_count, created_at, updated_at
  FROM scim_groups WHERE account_id = $1 AND deleted_at IS NULL`
const LIST = `${SHOWN} ORDER BY created_at, id LIMIT $2 OFFSET $3`
const FIND = `${SHOWN} AND id = $2`
const COUNT = 'SELECT count(*) AS total FROM scim_groups WHERE account_id = $1 AND deleted_at IS NULL'
const MEMBER_LIST = `
  SELECT member_list, member_count FROM scim_groups WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`
const MEMBERS = `
  SELECT member_id AS id, type, display_name FROM scim_members
  WHERE list_id = $1 ORDER BY member_id LIMIT $2 OFFSET $3`
const MEMBER_NAMES = `
  SELECT member_id AS id, display_name FROM scim_members
  WHERE list_id = $1 AND member_id > $2 ORDER BY member_id LIMIT $3`
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
const ERASE = 'DELETE FROM scim_groups WHERE account_id = $1 RETURNING member_count'

/** All groups of an account, including deleted ones. */
export async function readLocalGroups(queries: Queries, accountId: string): Promise<readonly LocalGroup[]> {
  const groups: LocalGroup[] = []
  for (;;) {
    const rows = await queries.query(LOCAL_GROUPS, [accountId, groups.at(-1)?.scimId ?? ''])
    groups.push(...z.array(localGroupSchema).parse(rows))
    if (rows.length < ROWS_AT_ONCE) return groups
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const nameSchema = z.object({ id: z.string(), display_name: z.string().nullable() })

/** The names of the members of a list by their ids, at most `most` of them. */
export async function readMemberNames(
  queries: Queries,
  listId: string,
  most = Infinity,
): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  for (let after = ''; names.size < most;) {
    const wanted = Math.min(ROWS_AT_ONCE, most - names.size)
    const rows = z.array(nameSchema).parse(await queries.query(MEMBER_NAMES, [listId, after, wanted]))
    for (const { id, display_name } of rows) names.set(id, display_name ?? id)
    after = rows.at(-1)?.id ?? ''
    if (rows.length < wanted) break
    await new Promise((resolve) => setImmediate(resolve))
  }
  return names
}

/** The current groups of an account, oldest first, and their total. */
export async function listGroups(queries: Queries, accountId: string, { limit, offset }: PageWanted) {
  const [count] = await queries.query(COUNT, [accountId])
  const rows = await queries.query(LIST, [accountId, limit, offset])
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

const memberListSchema = z.object({ member_list: z.string().nullable(), member_count: z.number().nullable() })

/**
 * The members of a group of the account; undefined without such a group. The total is null if the directory never
 * supplied members, so that "unknown" differs from "none".
 */
export async function listMembers(
  queries: Queries,
  group: { readonly accountId: string; readonly id: string },
  { limit, offset }: PageWanted,
) {
  const [found] = await queries.query(MEMBER_LIST, [group.accountId, group.id])
  if (found === undefined) return undefined
  const { member_list: list, member_count: total_count } = memberListSchema.parse(found)
  const rows = list === null ? [] : await queries.query(MEMBERS, [list, limit, offset])
  return { data: z.array(memberRowSchema).parse(rows), total_count }
}

export interface Membership {
  readonly listId: string
  readonly member: Member
}

/** Adds lists of members for a job, and rows of these or earlier ones. */
export async function addMemberLists(
  queries: Queries,
  job: { readonly id: string; readonly accountId: string },
  lists: readonly string[],
  rows: readonly Membership[],
): Promise<void> {
  await inBatches(
    queries,
    lists.map((id): Row => [id, job.accountId, job.id]),
    ADD_LISTS,
  )
  await inBatches(
    queries,
    rows.map(({ listId, member: { id, type, displayName } }): Row => [listId, id, type, displayName]),
    ADD_MEMBERS,
  )
}

/** Writes what a plan changes. Deleted groups keep their row, so that they get their id back, but no members. */
export async function applyPlan(
  queries: Queries,
  accountId: string,
  { changes, deletions }: Plan,
  now: Date,
): Promise<void> {
  const time = now.toISOString()
  const changed = changes.map(({ id, local, remote, members }): Row => {
    const { scimId, externalId, displayName } = remote
    const list =
      members === null
        ? [local?.memberDigest ?? null, local?.memberCount ?? null, local?.memberList ?? null]
        : [members.digest, members.count, members.listId]
    return [id, accountId, scimId, externalId, displayName, ...list, local?.createdAt ?? time, time, null]
  })
  const deleted = deletions.map(({ id, scimId, externalId, displayName, createdAt }): Row => {
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
      while ((await store.query(SWEEP_MEMBERS, [id])).length === ROWS_AT_ONCE);
      await store.query(SWEEP_LIST, [id])
    }
  }
}

/** Deletes all groups of an account; resolves to the numbers of groups and memberships. */
export async function eraseGroups(queries: Queries, accountId: string) {
  const rows = await queries.query(ERASE, [accountId])
  const counts = z.array(z.object({ member_count: z.number().nullable() })).parse(rows)
  const members = counts.reduce((sum, { member_count }) => sum + (member_count ?? 0), 0)
  return { groups: rows.length, members }
}
