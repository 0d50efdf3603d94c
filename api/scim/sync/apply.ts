/** Carries a plan out. Runs inside the transaction that also ends the job, so that all of it holds or none. */
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

// Rows of members are made for so many groups at a time: all at once would take more memory than all else of a sync.
const GROUPS_AT_ONCE = 500

/** A change, and the id of its group, new ones included. */
export type IdentifiedChange = Change & { readonly id: string }

/** What is to be written. */
export interface Work {
  /** In the order of the indexes, which are then written from one end to the other. */
  readonly changes: readonly IdentifiedChange[]
  readonly deletions: readonly LocalGroup[]
}

interface ApplyOptions {
  readonly accountId: string
  readonly now: Date
  /** Ids of the groups whose members are in the store already. */
  readonly staged: ReadonlySet<string>
}

/** The work of a plan. */
export function workOf({ changes, deletions }: Plan): Work {
  const identified = changes.map((change) => ({ ...change, id: change.local?.id ?? randomUUID() }))
  return { changes: identified.toSorted((a, b) => (a.id < b.id ? -1 : 1)), deletions }
}

/** Writes what the plan changes and nothing else. Deleted groups keep their row and their members. */
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

/** The row of a group as the directory has it now. */
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

/** The row of a local group that is not shown. */
export function deletedRow(group: LocalGroup, accountId: string, time: string): GroupRow {
  return { ...group, accountId, updatedAt: time, deletedAt: time }
}

// Of a list that changed only what differs is written: one person who joins a group of thousands is one row.
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
