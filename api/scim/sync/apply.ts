/** Applies a plan, in the transaction that also ends the job. */
import { randomUUID } from 'node:crypto'
import type { Queries } from '../../store/store.ts'
import { readMembers } from '../groups/group-store.ts'
import type { Member } from '../groups/members.ts'
import type { Change, LocalGroup, Plan } from './plan.ts'
import {
  deleteMembers,
  writeGroups,
  writeMembers,
  type GroupRow,
  type Membership,
} from '../groups/write-groups.ts'

// Groups per batch of member rows: all at once would take more memory than the rest of a sync.
const GROUPS_AT_ONCE = 500

/** A change with the id of its group, which a new group has too. */
export type IdentifiedChange = Change & { readonly id: string }

/** The rows to write. */
export interface Work {
  /** In index order, so that the indexes are written sequentially. */
  readonly changes: readonly IdentifiedChange[]
  readonly deletions: readonly LocalGroup[]
}

interface ApplyOptions {
  readonly accountId: string
  readonly now: Date
  /** Ids of the groups with staged members. */
  readonly staged: ReadonlySet<string>
}

export function workOf({ changes, deletions }: Plan): Work {
  const identified = changes.map((change) => ({ ...change, id: change.local?.id ?? randomUUID() }))
  return { changes: identified.toSorted((a, b) => (a.id < b.id ? -1 : 1)), deletions }
}

/** Writes only what the plan changes. Deleted groups keep their row and their members. */
export async function applyWork(
  queries: Queries,
  { changes, deletions }: Work,
  { accountId, now, staged }: ApplyOptions,
): Promise<void> {
  const time = now.toISOString()
  await writeGroups(queries, [
    ...changes.map((change) => changedRow(change, accountId, time)),
    ...deletions.map((group) => deletedRow(group, accountId, time)),
  ])
  const left = changes.filter(({ id, withMembers }) => withMembers && !staged.has(id))
  for (let first = 0; first < left.length; first += GROUPS_AT_ONCE) {
    const { gone, written } = await memberRows(queries, left.slice(first, first + GROUPS_AT_ONCE))
    await deleteMembers(queries, gone)
    await writeMembers(queries, written)
  }
}

/** The row of a group in its new state. */
export function changedRow(
  { id, local, remote, withMembers }: IdentifiedChange,
  accountId: string,
  time: string,
): GroupRow {
  const { scimId, externalId, displayName, members } = remote
  const { memberDigest = null, memberCount = null, createdAt = time } = local ?? {}
  const known = { memberDigest, memberCount }
  const supplied = withMembers && members !== null
  return {
    id,
    accountId,
    scimId,
    externalId,
    displayName,
    ...(supplied ? { memberDigest: members.digest, memberCount: members.count } : known),
    createdAt,
    updatedAt: time,
    deletedAt: null,
  }
}

/** The row of a deleted group. */
export function deletedRow(group: LocalGroup, accountId: string, time: string): GroupRow {
  return { ...group, accountId, updatedAt: time, deletedAt: time }
}

// Only differences of a changed list are written: one new member of a large group is one row.
async function memberRows(queries: Queries, changes: readonly IdentifiedChange[]) {
  const gone: { groupId: string; memberId: string }[] = []
  const written: Membership[] = []
  for (const { id, local, remote } of changes) {
    const stored = local === null ? [] : await readMembers(queries, id)
    const former = new Map(stored.map((member) => [member.id, member]))
    for (const member of remote.members?.read() ?? []) {
      if (!isSame(member, former.get(member.id))) written.push({ groupId: id, member })
      former.delete(member.id)
    }
    for (const memberId of former.keys()) gone.push({ groupId: id, memberId })
  }
  return { gone, written }
}

function isSame(member: Member, former: Member | undefined): boolean {
  return (
    former?.type === member.type &&
    former.displayName === member.displayName &&
    former.active === member.active &&
    former.email === member.email
  )
}
