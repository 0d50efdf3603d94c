/** Carries a plan out. Runs inside the transaction that also ends the job, so that all of it holds or none. */
import { randomUUID } from 'node:crypto'
import type { Queries } from '../store/store.ts'
import { inBatches, type Row } from './batches.ts'
import { readMembers } from './group-store.ts'
import type { Member } from './members.ts'
import type { Change, OurGroup, Plan } from './plan.ts'

const WRITE_GROUPS = (rows: string) => `
  INSERT INTO scim_groups (id, account_id, scim_id, external_id, display_name, member_digest, member_count,
    created_at, updated_at, deleted_at)
  VALUES ${rows}
  ON CONFLICT (id) DO UPDATE SET
    scim_id = excluded.scim_id, external_id = excluded.external_id, display_name = excluded.display_name,
    member_digest = excluded.member_digest, member_count = excluded.member_count,
    updated_at = excluded.updated_at, deleted_at = excluded.deleted_at`
const WRITE_MEMBERS = (rows: string) => `
  INSERT INTO scim_members (group_id, member_id, type, display_name) VALUES ${rows}
  ON CONFLICT (group_id, member_id) DO UPDATE SET
    type = excluded.type, display_name = excluded.display_name`
const DELETE_MEMBERS = (rows: string) => `
  DELETE FROM scim_members WHERE (group_id, member_id) IN (VALUES ${rows})`

// Rows of members are made for so many groups at a time: all at once would take more memory than all else of a sync.
const GROUPS_AT_ONCE = 500

interface ApplyOptions {
  readonly accountId: string
  readonly now: Date
}

/** Writes what the plan changes and nothing else. Deleted groups keep their row and their members. */
export async function applyPlan(
  queries: Queries,
  plan: Plan,
  { accountId, now }: ApplyOptions,
): Promise<void> {
  const time = now.toISOString()
  // In the order of the indexes, which are then written from one end to the other.
  const changes = plan.changes
    .map((change) => ({ ...change, id: change.ours?.id ?? randomUUID() }))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
  const rows = [
    ...changes.map((change) => changedRow(change, accountId, time)),
    ...plan.deletions.map((group) => deletedRow(group, accountId, time)),
  ]
  await inBatches(queries, rows, WRITE_GROUPS)

  for (let first = 0; first < changes.length; first += GROUPS_AT_ONCE) {
    const members = await memberRows(queries, changes.slice(first, first + GROUPS_AT_ONCE))
    await inBatches(queries, members.gone, DELETE_MEMBERS)
    await inBatches(queries, members.written, WRITE_MEMBERS)
  }
}

type IdentifiedChange = Change & { readonly id: string }

function changedRow(
  { id, ours, theirs, withMembers }: IdentifiedChange,
  accountId: string,
  time: string,
): Row {
  const { scimId, externalId, displayName, members } = theirs
  const [digest, count] =
    withMembers && members !== null
      ? [members.digest, members.count]
      : [ours?.memberDigest ?? null, ours?.memberCount ?? null]
  return [id, accountId, scimId, externalId, displayName, digest, count, ours?.createdAt ?? time, time, null]
}

function deletedRow(group: OurGroup, accountId: string, time: string): Row {
  const { id, scimId, externalId, displayName, memberDigest, memberCount, createdAt } = group
  return [id, accountId, scimId, externalId, displayName, memberDigest, memberCount, createdAt, time, time]
}

// Of a list that changed only what differs is written: one person who joins a group of thousands is one row.
async function memberRows(queries: Queries, changes: readonly IdentifiedChange[]) {
  const gone: Row[] = []
  const written: Row[] = []
  for (const { id, ours, theirs, withMembers } of changes) {
    if (!withMembers) continue
    const stored = ours === null ? [] : await readMembers(queries, id)
    const former = new Map(stored.map((member) => [member.id, member]))
    for (const member of theirs.members?.read() ?? []) {
      if (!isSame(member, former.get(member.id)))
        written.push([id, member.id, member.type, member.displayName])
      former.delete(member.id)
    }
    for (const memberId of former.keys()) gone.push([id, memberId])
  }
  return { gone, written }
}

function isSame(member: Member, former: Member | undefined): boolean {
  return former?.type === member.type && former.displayName === member.displayName
}
