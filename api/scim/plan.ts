/** Computes the changes of a sync from the local and the remote groups, whether they may be made, and their report. */
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

/** A group in the store; a deleted one keeps its row, and is restored under its id. */
export const localGroupSchema = z.object({
  id: z.string(),
  scimId: z.string(),
  externalId: z.string().nullable(),
  displayName: z.string(),
  /** Of the last supplied members; null, like the count and the list, if none were ever supplied. */
  memberDigest: z.string().nullable(),
  memberCount: z.number().nullable(),
  /** The id of the stored list of members; null for an empty one too. */
  memberList: z.string().nullable(),
  createdAt: z.string(),
  isDeleted: z.number().transform(Boolean),
})
export type LocalGroup = Readonly<z.infer<typeof localGroupSchema>>

/** A list of members from the directory, beside the stored list of its group. */
export interface MemberList {
  /** Equal for equal lists. */
  readonly digest: string
  readonly count: number
  /** The staged list, or the equal stored one; null in a dry run, and for an empty one. */
  readonly listId: string | null
  /** Differences from the stored list. */
  readonly joined: Part
  readonly left: Part
}

/** A group of the directory. Its members are `none` if the reply has none, and `unknown` if they were not read. */
export interface RemoteGroup extends Pick<ReceivedGroup, 'scimId' | 'externalId' | 'displayName'> {
  readonly members: MemberList | 'none' | 'unknown'
}

/** One group to write. */
interface Change {
  /** The id of the group, which a new one has too. */
  readonly id: string
  /** The stored group; undefined for a new one. */
  readonly local: LocalGroup | undefined
  readonly remote: RemoteGroup
  /** The new list of members; null if the stored one stays. */
  readonly members: MemberList | null
}

export interface Plan {
  readonly changes: readonly Change[]
  /** Groups that the directory lacks. */
  readonly deletions: readonly LocalGroup[]
  /** Number of groups from the directory, and of all after the plan: also unlisted ones that stay. */
  readonly received: number
  readonly present: number
  /** Numbers of groups before, and of the members of those that stay: removals are measured against them. */
  readonly groupsBefore: number
  readonly membersBefore: number
}

export function hasNoMembers({ members }: RemoteGroup): boolean {
  return members === 'none' || (members !== 'unknown' && members.count === 0)
}

/** The list of a group without members; such lists are recognized by their count. */
export const NO_MEMBERS: MemberList = {
  digest: '',
  count: 0,
  listId: null,
  joined: { count: 0, names: [] },
  left: { count: 0, names: [] },
}

/** The changes from the local groups to the remote ones; groups with an id in `staying` are not removed. */
export async function planSync(
  local: readonly LocalGroup[],
  remote: ReadonlyMap<string, RemoteGroup>,
  staying: ReadonlySet<string> = new Set(),
): Promise<Plan> {
  const findLocal = await matchGroups(local, remote, staying)
  const suppliesMembers = remote
    .values()
    .some(({ members }) => typeof members === 'object' && members.count > 0)
  const matched = new Set<LocalGroup>()
  const changes: Change[] = []
  let done = 0
  for (const group of remote.values()) {
    const former = findLocal(group)
    if (former !== undefined) matched.add(former)
    const change = changeOf(former, group, suppliesMembers)
    if (change !== undefined) changes.push(change)
    if ((done += 1) % PER_TURN === 0) await endOfTurn()
  }
  const living = local.filter((group) => !group.isDeleted)
  const absent = living.filter((group) => !matched.has(group))
  const deletions = absent.filter(({ scimId }) => !staying.has(scimId))
  const removed = new Set(deletions)
  return {
    changes,
    deletions,
    received: remote.size,
    present: remote.size + absent.length - deletions.length,
    groupsBefore: living.length,
    membersBefore: sum(living.map((group) => (removed.has(group) ? 0 : (group.memberCount ?? 0)))),
  }
}

/** Matches by the directory's id, then, for a recreated group, by its externalId. Never by name. */
async function matchGroups(
  local: readonly LocalGroup[],
  remote: ReadonlyMap<string, RemoteGroup>,
  staying: ReadonlySet<string>,
): Promise<(group: RemoteGroup) => LocalGroup | undefined> {
  const byScimId = new Map(local.map((group) => [group.scimId, group]))
  await endOfTurn()
  const free = local.filter(({ scimId }) => !remote.has(scimId) && !staying.has(scimId))
  const living = byExternalId(free.filter((group) => !group.isDeleted))
  const deleted = byExternalId(free.filter((group) => group.isDeleted))
  await endOfTurn()
  const recreated = byExternalId([...remote.values()].filter(({ scimId }) => !byScimId.has(scimId)))
  await endOfTurn()
  return (group) => {
    const { scimId, externalId } = group
    const sameId = byScimId.get(scimId)
    if (sameId !== undefined || externalId === null || recreated.get(externalId) !== group) return sameId
    return living.get(externalId) ?? deleted.get(externalId)
  }
}

/** By externalId, only unique ones: a shared externalId identifies no group. */
export function byExternalId<Group extends Pick<RemoteGroup, 'externalId'>>(
  groups: readonly Group[],
): Map<string, Group | undefined> {
  const found = new Map<string, Group | undefined>()
  for (const group of groups) {
    const { externalId } = group
    if (externalId !== null) found.set(externalId, found.has(externalId) ? undefined : group)
  }
  return found
}

function changeOf(
  local: LocalGroup | undefined,
  remote: RemoteGroup,
  suppliesMembers: boolean,
): Change | undefined {
  const members = newMembers(local, remote, suppliesMembers)
  const isSame =
    local?.isDeleted === false &&
    local.scimId === remote.scimId &&
    local.externalId === remote.externalId &&
    local.displayName === remote.displayName &&
    members === null
  return isSame ? undefined : { id: local?.id ?? randomUUID(), local, remote, members }
}

/** The list of members to write, if it is new. A group without members is empty if the directory supplies members. */
function newMembers(
  local: LocalGroup | undefined,
  { members }: RemoteGroup,
  suppliesMembers: boolean,
): MemberList | null {
  if (members === 'none') return suppliesMembers && local?.memberCount !== 0 ? NO_MEMBERS : null
  return members === 'unknown' || members.digest === local?.memberDigest ? null : members
}

/** The directory's ids of groups that a plan removes: deleted ones, and ones replaced by a recreated group. */
export function goneIn({ changes, deletions }: Plan): string[] {
  const replaced = changes.filter(({ local, remote }) => {
    return local?.isDeleted === false && local.scimId !== remote.scimId
  })
  return [...deletions, ...replaced.flatMap(({ local }) => local ?? [])].map((group) => group.scimId)
}

/** This many groups and members may be removed in one sync, and beyond them this percentage. */
interface Gate {
  readonly gate_groups: number
  readonly gate_members: number
  readonly gate_percent: number
}

/** The failure that blocks a plan without `--allow-deletions`, if any: a large loss more likely is an incomplete reading. */
export function deletionFault(plan: Plan, gate: Gate): SyncFailure | undefined {
  const { deletions, received, groupsBefore, membersBefore } = plan
  if (received === 0 && groupsBefore > 0) {
    return new SyncFailure('directory_empty', `the directory has no groups, but ${groupsBefore} are stored`)
  }
  if (exceedsGate(deletions.length, groupsBefore, gate.gate_groups, gate)) {
    const detail = `${deletions.length} of ${groupsBefore} groups would be removed`
    return new SyncFailure('deletion_threshold_exceeded', detail)
  }
  // Added members do not offset removed ones.
  const left = countOf(plan, 'left')
  if (!exceedsGate(left, membersBefore, gate.gate_members, gate)) return undefined
  const detail = `${left} of ${membersBefore} memberships would be removed`
  return new SyncFailure('deletion_threshold_exceeded', detail)
}

/** Whether this share of all exceeds a gate; in integers, so that exactly the percentage is allowed. */
export function exceedsGate(
  lost: number,
  all: number,
  free: number,
  { gate_percent }: Pick<Gate, 'gate_percent'>,
): boolean {
  return lost > free && lost * 100 > all * gate_percent
}

/** The changes of a job for its account (CONTRACT 5). Members are named as `group: member`. */
export const reportSchema = z.strictObject({
  groups_added: partSchema,
  groups_renamed: partSchema.describe('Names as `former -> present`.'),
  groups_deleted: partSchema,
  members_joined: partSchema.describe('Names as `group: member`.'),
  members_left: partSchema.describe('Of groups that stay. Names as `group: member`.'),
  warnings: z.array(z.string()).describe('What the sync interpreted, left out or kept.'),
})
export type Report = z.infer<typeof reportSchema>

/** The report of a plan; an empty plan is one of a job that changed nothing. */
export function reportOf(plan: Pick<Plan, 'changes' | 'deletions'>, warnings: readonly string[]): Report {
  const { changes, deletions } = plan
  const added = changes.filter(({ local }) => local?.isDeleted !== false)
  const renamed = changes.filter(({ local, remote }) => {
    return local?.isDeleted === false && local.displayName !== remote.displayName
  })
  const members = (which: 'joined' | 'left') => ({
    count: countOf(plan, which),
    names: changes
      .values()
      .flatMap(({ members: list, remote }) =>
        (list?.[which].names ?? []).map((name) => `${remote.displayName}: ${name}`),
      )
      .take(NAMED)
      .toArray(),
  })
  return {
    groups_added: partOf(added.map(({ remote }) => remote.displayName)),
    groups_renamed: partOf(
      renamed.map(({ local, remote }) => `${local?.displayName} -> ${remote.displayName}`),
    ),
    groups_deleted: partOf(deletions.map(({ displayName }) => displayName)),
    members_joined: members('joined'),
    members_left: members('left'),
    warnings: [...warnings],
  }
}

/** All of these names, of which a report lists the first. */
export function partOf(names: readonly string[]): Part {
  return { count: names.length, names: names.slice(0, NAMED) }
}

function countOf({ changes }: Pick<Plan, 'changes'>, which: 'joined' | 'left'): number {
  return sum(changes.map(({ members }) => members?.[which].count ?? 0))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
