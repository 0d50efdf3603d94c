/** Writes groups and their members in batches. */
import type { Queries } from '../../store/store.ts'
import { inBatches, type Row } from './batches.ts'
import type { Member } from './members.ts'
import type { LocalGroup } from '../sync/plan.ts'

const WRITE_GROUPS = (rows: string) => `
  INSERT INTO scim_groups (id, account_id, scim_id, external_id, display_name, member_digest, member_count,
    created_at, updated_at, deleted_at)
  VALUES ${rows}
  ON CONFLICT (id) DO UPDATE SET
    scim_id = excluded.scim_id, external_id = excluded.external_id, display_name = excluded.display_name,
    member_digest = excluded.member_digest, member_count = excluded.member_count,
    updated_at = excluded.updated_at, deleted_at = excluded.deleted_at`
const WRITE_MEMBERS = (rows: string) => `
  INSERT INTO scim_members (group_id, member_id, type, display_name, active, email) VALUES ${rows}
  ON CONFLICT (group_id, member_id) DO UPDATE SET
    type = excluded.type, display_name = excluded.display_name, active = excluded.active, email = excluded.email`
const DELETE_MEMBERS = (rows: string) => `
  DELETE FROM scim_members WHERE (group_id, member_id) IN (VALUES ${rows})`
const DELETE_ALL_MEMBERS = 'DELETE FROM scim_members WHERE group_id = $1'

export interface GroupRow extends Omit<LocalGroup, 'deleted'> {
  readonly accountId: string
  readonly updatedAt: string
  readonly deletedAt: string | null
}

/** Inserts or updates groups by id. */
export async function writeGroups(queries: Queries, groups: readonly GroupRow[]): Promise<void> {
  const rows = groups.map((group): Row => [
    group.id,
    group.accountId,
    group.scimId,
    group.externalId,
    group.displayName,
    group.memberDigest,
    group.memberCount,
    group.createdAt,
    group.updatedAt,
    group.deletedAt,
  ])
  await inBatches(queries, rows, WRITE_GROUPS)
}

export interface Membership {
  readonly groupId: string
  readonly member: Member
}

/** Inserts or updates members. */
export async function writeMembers(queries: Queries, memberships: readonly Membership[]): Promise<void> {
  const rows = memberships.map(({ groupId, member }): Row => {
    const { id, type, displayName, active, email } = member
    return [groupId, id, type, displayName, active === null ? null : Number(active), email]
  })
  await inBatches(queries, rows, WRITE_MEMBERS)
}

/** Deletes members by both ids. */
export async function deleteMembers(
  queries: Queries,
  members: readonly { readonly groupId: string; readonly memberId: string }[],
): Promise<void> {
  const rows = members.map(({ groupId, memberId }): Row => [groupId, memberId])
  await inBatches(queries, rows, DELETE_MEMBERS)
}

export async function emptyGroup(queries: Queries, groupId: string): Promise<void> {
  await queries.query(DELETE_ALL_MEMBERS, [groupId])
}
