/** Computes the changes of a sync from the stored and the received groups, whether they may be made, and their report. */
import { randomUUID } from 'node:crypto'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { z } from 'zod'
import { SyncFailure } from './failures.ts'
import type { ReceivedGroup } from './messages.ts'

/** Names that a report lists of each kind. */
const NAMED = 100
/** Groups between two turns of the event loop. */
const PER_TURN = 2000

/** Some groups or members: their number, and the names of the first. */
const partSchema = z.strictObject({
  count: z.int().nonnegative(),
  names: z.array(z.string()).describe(`The first ${NAMED} of them.`),
})
export type Part = z.infer<typeof partSchema>

/** Nobody, to be added to. */
export const emptyPart = (): Part => ({ count: 0, names: [] })

/** Adds all of these names, or `count` of which these are the first, each after `prefix`; returns the part. */
export function addTo(part: Part, names: readonly string[], count = names.length, prefix = ''): Part {
  part.count += count
  const room = NAMED - part.names.length
  // A sync may have many more names than a report.
  if (room > 0) part.names.push(...names.slice(0, room).map((name) => prefix + name))
  return part
}

/** A group in the store; a deleted one keeps its row, and is restored under its id. */
export const storedGroupSchema = z.object({
  id: z.string(),
  scim_id: z.string(),
  external_id: z.string().nullable(),
  display_name: z.string(),
  /** Of the last supplied members: equal for equal ones. Null, like the count, if none were ever supplied. */
  member_digest: z.string().nullable(),
  member_count: z.number().nullable(),
  /** The id of the stored list of members; null for an empty one too. */
  member_list: z.string().nullable(),
  created_at: z.string(),
  updated_at: z.string(),
  deleted_at: z.string().nullable(),
})
export type StoredGroup = Readonly<z.infer<typeof storedGroupSchema>>

/** Members from the directory: the columns of their group, and the differences from the stored list. */
export interface MemberList extends Pick<StoredGroup, 'member_digest' | 'member_list'> {
  readonly member_count: number
  readonly joined?: Part
  readonly left?: Part
}

/** A group of the directory; its members are null if they were not read. */
export interface RemoteGroup extends Pick<ReceivedGroup, 'scim_id' | 'external_id' | 'display_name'> {
  readonly members: MemberList | null
}

/** One group to write: its row before, if any, and after. */
export interface Change extends Pick<MemberList, 'joined' | 'left'> {
  readonly former: StoredGroup | undefined
  readonly row: StoredGroup
}

/**
 * The changes from the stored groups to the received ones; groups with an id in `staying` are not deleted. Received ones
 * are matched by the directory's id, then, if recreated, by externalId. Never by name.
 */
export async function planSync(
  stored: readonly StoredGroup[],
  remote: ReadonlyMap<string, RemoteGroup>,
  staying: ReadonlySet<string>,
  now: Date,
): Promise<readonly Change[]> {
  const time = now.toISOString()
  const byScimId = new Map(stored.map((group) => [group.scim_id, group]))
  const free = stored.filter(({ scim_id }) => !remote.has(scim_id) && !staying.has(scim_id))
  await endOfTurn()
  const [living, deleted] = [byExternalId(free.filter(isLiving)), byExternalId(free.filter(isDeleted))]
  const recreated = byExternalId([...remote.values()].filter(({ scim_id }) => !byScimId.has(scim_id)))
  const findFormer = (group: RemoteGroup) => {
    const { scim_id, external_id } = group
    if (external_id === null || recreated.get(external_id) !== group) return byScimId.get(scim_id)
    return living.get(external_id) ?? deleted.get(external_id)
  }
  const suppliesMembers = remote.values().some(({ members }) => members !== null && members.member_count > 0)
  const absent = new Set(free.filter(isLiving))
  const changes: Change[] = []
  let done = 0
  for (const group of remote.values()) {
    const former = findFormer(group)
    if (former !== undefined) absent.delete(former)
    const change = changeOf(former, group, { suppliesMembers, time })
    if (change !== undefined) changes.push(change)
    if ((done += 1) % PER_TURN === 0) await endOfTurn()
  }
  return [...changes, ...absent.values().map((group) => deletionOf(group, time))]
}

const isDeleted = ({ deleted_at }: StoredGroup): boolean => deleted_at !== null

/** Whether a group is in use. */
export const isLiving = (group: StoredGroup): boolean => !isDeleted(group)

/** Groups by their externalId; a shared one identifies no group. */
export function byExternalId<Group extends Pick<ReceivedGroup, 'external_id'>>(groups: readonly Group[]) {
  const found = new Map<string, Group | undefined>()
  for (const group of groups) {
    const key = group.external_id
    if (key !== null) found.set(key, found.has(key) ? undefined : group)
  }
  return found
}

const NO_MEMBERS = { member_digest: null, member_count: null, member_list: null }
/** The columns that make a change. */
const COMPARED = ['scim_id', 'external_id', 'display_name', 'member_digest', 'deleted_at'] as const

function changeOf(
  former: StoredGroup | undefined,
  { scim_id, external_id, display_name, members }: RemoteGroup,
  { suppliesMembers, time }: { readonly suppliesMembers: boolean; readonly time: string },
): Change | undefined {
  const before = former ?? { id: randomUUID(), created_at: time, ...NO_MEMBERS }
  // A group without members is empty if the directory supplies members, for others or for this one before.
  const isKnown = suppliesMembers || Number(before.member_count) > 0
  const { joined, left, ...columns }: Partial<MemberList> = (isKnown && members) || {}
  const received = { scim_id, external_id, display_name, updated_at: time, deleted_at: null }
  const row = { ...before, ...columns, ...received }
  if (former !== undefined && COMPARED.every((column) => former[column] === row[column])) return undefined
  return { former, row, ...(joined && { joined }), ...(left && { left }) }
}

/** Deleted groups keep their row, so that they get their id back, but no members. */
function deletionOf(former: StoredGroup, time: string): Change {
  return { former, row: { ...former, ...NO_MEMBERS, updated_at: time, deleted_at: time } }
}

/** This many groups and members may be removed in one sync, and beyond them this percentage. */
interface Gate {
  readonly gate_groups: number
  readonly gate_members: number
  readonly gate_percent: number
}

/**
 * The failure that blocks changes without `--allow-deletions`, if any: a large loss more likely is an incomplete reading.
 * Added members do not offset removed ones.
 */
export function deletionFault(
  living: readonly StoredGroup[],
  changes: readonly Change[],
  { groups_deleted: { count: deleted }, members_left: { count: left } }: Report,
  gate: Gate,
): SyncFailure | undefined {
  const gone = new Set(changes.filter(({ row }) => isDeleted(row)).map(({ row }) => row.id))
  const members = living.reduce(
    (sum, { id, member_count }) => sum + (gone.has(id) ? 0 : (member_count ?? 0)),
    0,
  )
  const groups = living.length
  const isTooMuch =
    exceedsGate(deleted, groups, gate.gate_groups, gate) ||
    exceedsGate(left, members, gate.gate_members, gate)
  if (!isTooMuch) return undefined
  const detail = `${deleted} of ${groups} groups and ${left} of ${members} memberships would be removed`
  return new SyncFailure('deletion_threshold_exceeded', detail)
}

/** Whether this share of all exceeds a gate; in integers, so that exactly the percentage is allowed. */
export function exceedsGate(lost: number, all: number, free: number, { gate_percent }: Gate): boolean {
  return lost > free && lost * 100 > all * gate_percent
}

/** The changes of a job for its account (CONTRACT 5). */
export const reportSchema = z.strictObject({
  groups_added: partSchema,
  groups_renamed: partSchema.describe('Names as `former -> present`.'),
  groups_deleted: partSchema,
  members_joined: partSchema.describe('Names as `group: member`.'),
  members_left: partSchema.describe('Of groups that stay. Names as `group: member`.'),
  warnings: z.array(z.string()).describe('What the sync interpreted, left out or kept.'),
})
export type Report = z.infer<typeof reportSchema>

/** The report of changes; without any it is one of a job that changed nothing. */
export function reportOf(changes: readonly Change[], warnings: readonly string[]): Report {
  const report: Report = {
    groups_added: emptyPart(),
    groups_renamed: emptyPart(),
    groups_deleted: emptyPart(),
    members_joined: emptyPart(),
    members_left: emptyPart(),
    warnings: [...warnings],
  }
  const none = emptyPart()
  for (const { former, row, joined = none, left = none } of changes) {
    const name = row.display_name
    if (isDeleted(row)) addTo(report.groups_deleted, [name])
    else if (former === undefined || isDeleted(former)) addTo(report.groups_added, [name])
    else if (former.display_name !== name) addTo(report.groups_renamed, [`${former.display_name} -> ${name}`])
    addTo(report.members_joined, joined.names, joined.count, `${name}: `)
    addTo(report.members_left, left.names, left.count, `${name}: `)
  }
  return report
}
