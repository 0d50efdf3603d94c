/** Computes the changes of a sync from the stored and the received groups, and whether they may be made. */
import { randomUUIDv7 } from 'node:crypto'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { z } from 'zod'
import type { Connection } from './connections.ts'
import { SyncFailure } from './failures.ts'
import type { ReceivedGroup } from './messages.ts'

/** Names that a report lists of each kind. */
const NAMED = 100
/** Groups between two turns of the event loop. */
const PER_TURN = 2000

/** Some groups or members: their number, and the names of the first. */
const partSchema = z
  .strictObject({
    count: z.int().nonnegative(),
    names: z.array(z.string()).describe(`The first ${NAMED} of them.`),
  })
  .prefault({ count: 0, names: [] })

/** The changes of a job for its account (CONTRACT 5). */
export const reportSchema = z.strictObject({
  groups_added: partSchema,
  groups_renamed: partSchema.describe('Names as `former -> present`.'),
  groups_deleted: partSchema,
  members_joined: partSchema.describe('Names as `group: member`.'),
  members_left: partSchema.describe('Of groups that stay. Names as `group: member`.'),
  warnings: z.array(z.string()).prefault([]).describe('What the sync interpreted, left out or kept.'),
})
export type Report = z.infer<typeof reportSchema>

/** The report of a job that changed nothing, to be added to. */
export const emptyReport = (): Report => reportSchema.parse({})

/** Counts one more group or member, and names the first ones. */
export function addTo(part: z.infer<typeof partSchema>, name: string, prefix = ''): void {
  part.count += 1
  if (part.names.length < NAMED) part.names.push(prefix + name)
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

const NO_MEMBERS = { member_digest: null, member_count: null, member_list: null }

/** A group of the directory. Its members are the columns of their list, or null if they are unknown. */
export type RemoteGroup = Pick<ReceivedGroup, 'scim_id' | 'external_id' | 'display_name'> & {
  members: Pick<StoredGroup, keyof typeof NO_MEMBERS> | null
}

/** What a sync compares. */
type Sides = {
  readonly stored: readonly StoredGroup[]
  readonly findFormer: FindFormer
  readonly remote: ReadonlyMap<string, RemoteGroup>
  /** The ids of groups that are not deleted though they are absent. */
  readonly staying: ReadonlySet<string>
  readonly connection: Connection
}

/**
 * The rows to write, so that the stored groups become the received ones, the number of groups then, and the fault that
 * blocks this without `--allow-deletions`, if any. Adds the groups to the report, which has the members already.
 */
export async function planSync(sides: Sides, report: Report, now: Date) {
  const { stored, findFormer, remote, staying, connection } = sides
  const time = now.toISOString()
  const isAbsent = ({ scim_id }: StoredGroup) => !remote.has(scim_id) && !staying.has(scim_id)
  const living = stored.filter(isLiving)
  const absent = new Set(living.filter(isAbsent))
  await endOfTurn()
  const received = byExternalId([...remote.values()])
  const formerOf = (group: Identity) => {
    const found = findFormer(group)
    if (found === undefined || found.scim_id === group.scim_id) return found
    // Recreated, unless its former self is still there, or another group has the same externalId.
    return isAbsent(found) && received.get(group.external_id ?? '') !== undefined ? found : undefined
  }
  const rows: StoredGroup[] = []
  let done = 0
  for (const { members, ...group } of remote.values()) {
    const former = formerOf(group)
    if (former !== undefined) absent.delete(former)
    const { display_name: name } = group
    if (former === undefined || !isLiving(former)) addTo(report.groups_added, name)
    else if (former.display_name !== name) addTo(report.groups_renamed, `${former.display_name} -> ${name}`)
    const before = former ?? { id: randomUUIDv7(), created_at: time, ...NO_MEMBERS }
    const row = { ...before, ...members, ...group, updated_at: time, deleted_at: null }
    if (COMPARED.some((column) => former?.[column] !== row[column])) rows.push(row)
    if ((done += 1) % PER_TURN === 0) await endOfTurn()
  }
  // Deleted groups keep their row, so that they get their id back, but no members.
  for (const group of absent) {
    addTo(report.groups_deleted, group.display_name)
    rows.push({ ...group, ...NO_MEMBERS, updated_at: time, deleted_at: time })
  }
  // In the order of the index. New ids and their lists come in this order, which makes writing them fast.
  rows.sort((a, b) => (a.id < b.id ? -1 : 1))
  const fault =
    remote.size === 0 && living.length > 0
      ? new SyncFailure('directory_empty', `the directory has no groups, but ${living.length} are stored`)
      : deletionFault(living, absent, report, connection)
  return { rows, total: remote.size + staying.size, fault }
}

/** The columns that make a change. */
const COMPARED = ['scim_id', 'external_id', 'display_name', 'member_digest', 'deleted_at'] as const

/** Whether a group is in use. */
export const isLiving = ({ deleted_at }: StoredGroup): boolean => deleted_at === null

/** What identifies a group of a directory. */
export type Identity = Pick<ReceivedGroup, 'scim_id' | 'external_id'>
export type FindFormer = ReturnType<typeof indexStored>

/**
 * Finds the stored group that a received one was: by the directory's id, or else, as it may have been recreated, by its
 * externalId, of the groups in use first. Never by name.
 */
export function indexStored(stored: readonly StoredGroup[]) {
  const byScimId = new Map(stored.map((group) => [group.scim_id, group]))
  const living = byExternalId(stored.filter(isLiving))
  const deleted = byExternalId(stored.filter((group) => !isLiving(group)))
  return ({ scim_id, external_id }: Identity): StoredGroup | undefined => {
    const key = external_id ?? ''
    return byScimId.get(scim_id) ?? living.get(key) ?? deleted.get(key)
  }
}

/** Groups by their externalId; a shared one identifies no group. */
function byExternalId<Group extends Identity>(groups: readonly Group[]) {
  const found = new Map<string, Group | undefined>()
  for (const group of groups) {
    const key = group.external_id
    if (key !== null) found.set(key, found.has(key) ? undefined : group)
  }
  return found
}

/** The failure if too much is lost, which more likely is an incomplete reading. Added members do not offset removed ones. */
function deletionFault(living: StoredGroup[], absent: Set<StoredGroup>, report: Report, gate: Connection) {
  const counts = living.map((group) => (absent.has(group) ? 0 : (group.member_count ?? 0)))
  const members = counts.reduce((sum, count) => sum + count, 0)
  const left = report.members_left.count
  const isTooMuch =
    exceedsGate(absent.size, living.length, gate.gate_groups, gate) ||
    exceedsGate(left, members, gate.gate_members, gate)
  if (!isTooMuch) return undefined
  const detail = `${absent.size} of ${living.length} groups and ${left} of ${members} memberships would be removed`
  return new SyncFailure('deletion_threshold_exceeded', detail)
}

/** Whether this share of all exceeds a gate; in integers, so that exactly the percentage is allowed. */
export function exceedsGate(lost: number, all: number, free: number, { gate_percent }: Connection): boolean {
  return lost > free && lost * 100 > all * gate_percent
}
