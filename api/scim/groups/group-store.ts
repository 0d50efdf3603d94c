/** The synced groups in the store, for syncs and for the account's administrators. */
import { z } from 'zod'
import type { Queries } from '../../store/store.ts'
import type { Member } from './members.ts'
import type { LocalGroup } from '../sync/plan.ts'

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
  created_at: z.string(),
  updated_at: z.string(),
})

export const memberRowSchema = z.object({
  id: z.string(),
  type: z.string().nullable(),
  display_name: z.string().nullable(),
  active: z
    .union([z.boolean(), z.number().transform((flag) => flag !== 0)])
    .nullable()
    .describe('Whether the user is active in the directory; null if it sends no value.'),
  email: z.string().nullable().describe('Null if the directory sends none.'),
})

const memberIdSchema = memberRowSchema.pick({ id: true })

const localGroupSchema = z
  .object({
    id: z.string(),
    scim_id: z.string(),
    external_id: z.string().nullable(),
    display_name: z.string(),
    member_digest: z.string().nullable(),
    member_count: z.number().nullable(),
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
    createdAt: row.created_at,
    deleted: row.deleted_at !== null,
  }))

const LOCAL_GROUPS = `
  SELECT id, scim_id, external_id, display_name, member_digest, member_count, created_at, deleted_at
  FROM scim_groups WHERE account_id = $1`
const LIST = `
  SELECT id, account_id AS organization_id, scim_id AS external_id, display_name, created_at, updated_at
  FROM scim_groups WHERE account_id = $1 AND deleted_at IS NULL
  ORDER BY created_at, id LIMIT $2 OFFSET $3`
const COUNT = `SELECT count(*) AS total FROM scim_groups WHERE account_id = $1 AND deleted_at IS NULL`
const MEMBER_COUNT = `
  SELECT member_count FROM scim_groups WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`
const MEMBERS = `
  SELECT member_id AS id, type, display_name, active, email FROM scim_members
  WHERE group_id = $1 ORDER BY member_id LIMIT $2 OFFSET $3`
const MEMBER_IDS = 'SELECT member_id AS id FROM scim_members WHERE group_id = $1'
const ALL_MEMBERS = `
  SELECT member_id AS id, type, display_name, active, email FROM scim_members WHERE group_id = $1`

/** All groups of an account, including deleted ones. */
export async function readLocalGroups(queries: Queries, accountId: string): Promise<readonly LocalGroup[]> {
  return z.array(localGroupSchema).parse(await queries.query(LOCAL_GROUPS, [accountId]))
}

/** The members of a group, as last supplied. */
export async function readMembers(queries: Queries, groupId: string): Promise<readonly Member[]> {
  const rows = z.array(memberRowSchema).parse(await queries.query(ALL_MEMBERS, [groupId]))
  return rows.map(({ display_name: displayName, ...rest }) => ({ ...rest, displayName }))
}

export async function readMemberIds(queries: Queries, groupId: string): Promise<readonly string[]> {
  const rows = z.array(memberIdSchema).parse(await queries.query(MEMBER_IDS, [groupId]))
  return rows.map(({ id }) => id)
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

/**
 * The members of a group of the account; undefined without such a group. The total is null if the directory never
 * supplied members, so that "unknown" differs from "none".
 */
export async function listMembers(
  queries: Queries,
  group: { readonly accountId: string; readonly id: string },
  { limit, offset }: PageWanted,
) {
  const [found] = await queries.query(MEMBER_COUNT, [group.accountId, group.id])
  if (found === undefined) return undefined
  const rows = await queries.query(MEMBERS, [group.id, limit, offset])
  return {
    data: z.array(memberRowSchema).parse(rows),
    total_count: z.object({ member_count: z.number().nullable() }).parse(found).member_count,
  }
}
