/** Computes the changes of a sync from the local and the remote groups, and whether they may be made. */
import { randomUUID } from 'node:crypto'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import type { DeletionGate } from './connections.ts'
import { SyncFailure } from './failures.ts'
import { EMPTY_DIGEST, type LocalGroup, type MemberList, type RemoteGroup } from './group.ts'

/** One group to write. */
export interface Change {
  /** The id of the group, which a new one has too. */
  readonly id: string
  /** The stored group; null for a new one. */
  readonly local: LocalGroup | null
  readonly remote: RemoteGroup
  /** The new list of members; null if the stored one stays. */
  readonly members: MemberList | null
}

export interface Plan {
  readonly changes: readonly Change[]
  /** Groups that the directory lacks. */
  readonly deletions: readonly LocalGroup[]
  /** Number of groups from the directory. */
  readonly received: number
  /** Groups after the plan: these, and local ones that stay unlisted. */
  readonly present: number
  /** The state before, with members only of groups that stay: removals are measured against it. */
  readonly before: { readonly groups: number; readonly members: number }
  /** Members removed from groups that stay; added members do not offset them. */
  readonly removedMembers: number
}

/** The changes from the local groups to the remote ones; groups with an id in `staying` are not removed. */
export async function planSync(
  local: readonly LocalGroup[],
  remote: ReadonlyMap<string, RemoteGroup>,
  staying: ReadonlySet<string> = new Set(),
): Promise<Plan> {
  const pairs = await matchGroups(local, [...remote.values()], staying)
  const matched = new Set(pairs.map((pair) => pair.local))
  await endOfTurn()
  const living = local.filter((group) => !group.deleted)
  const absent = living.filter((group) => !matched.has(group))
  const deletions = absent.filter(({ scimId }) => !staying.has(scimId))
  const removed = new Set(deletions)
  const suppliesMembers = pairs.some(({ remote: { members } }) => typeof members === 'object')
  const changes = pairs
    .map((pair) => changeOf(pair, suppliesMembers))
    .filter((change) => change !== undefined)
  await endOfTurn()
  const lost = changes.filter((change) => change.local?.deleted === false)
  return {
    changes,
    deletions,
    received: remote.size,
    present: remote.size + absent.length - deletions.length,
    before: {
      groups: living.length,
      members: sum(living.filter((group) => !removed.has(group)).map((group) => group.memberCount ?? 0)),
    },
    removedMembers: sum(lost.map(({ members }) => members?.left ?? 0)),
  }
}

/** The directory's ids of groups that a plan removes: deleted ones, and ones replaced by a recreated group. */
export function goneIn({ changes, deletions }: Plan): string[] {
  const replaced = changes.flatMap(({ local, remote }) =>
    local === null || local.deleted || local.scimId === remote.scimId ? [] : [local],
  )
  return [...deletions, ...replaced].map((group) => group.scimId)
}

interface Pair {
  readonly local: LocalGroup | null
  readonly remote: RemoteGroup
}

// Matches by the directory's id, then, for a recreated group, by its externalId. Never by name.
async function matchGroups(
  local: readonly LocalGroup[],
  remote: readonly RemoteGroup[],
  staying: ReadonlySet<string>,
): Promise<Pair[]> {
  const byScimId = new Map(local.map((group) => [group.scimId, group]))
  const remoteIds = new Set(remote.map((group) => group.scimId))
  await endOfTurn()
  const left = local.filter(({ scimId }) => !remoteIds.has(scimId) && !staying.has(scimId))
  const living = byExternalId(left.filter((group) => !group.deleted))
  const deleted = byExternalId(left.filter((group) => group.deleted))
  const anew = byExternalId(remote.filter((group) => !byScimId.has(group.scimId)))
  await endOfTurn()
  return remote.map((group) => {
    const sameId = byScimId.get(group.scimId)
    if (sameId !== undefined) return { local: sameId, remote: group }
    const { externalId } = group
    if (externalId === null || anew.get(externalId) === undefined) return { local: null, remote: group }
    return { local: living.get(externalId) ?? deleted.get(externalId) ?? null, remote: group }
  })
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

function changeOf({ local, remote }: Pair, suppliesMembers: boolean): Change | undefined {
  const members = newMembers(local, remote, suppliesMembers)
  const isSame =
    local !== null &&
    !local.deleted &&
    local.scimId === remote.scimId &&
    local.externalId === remote.externalId &&
    local.displayName === remote.displayName &&
    members === null
  return isSame ? undefined : { id: local?.id ?? randomUUID(), local, remote, members }
}

/**
 * The list of members to write, if it is new. A group without members is empty if the directory demonstrably supplies
 * members: for another group, or for this one before.
 */
function newMembers(
  local: LocalGroup | null,
  { members }: RemoteGroup,
  suppliesMembers: boolean,
): MemberList | null {
  if (members === 'unknown') return null
  const former = local?.memberCount ?? 0
  if (members === 'none' && !suppliesMembers && former === 0) return null
  const list = members === 'none' ? emptied(former) : members
  return list.digest === local?.memberDigest ? null : list
}

function emptied(left: number): MemberList {
  return { digest: EMPTY_DIGEST, count: 0, listId: null, joined: 0, left, joinedNames: [], leftNames: [] }
}

/** The failure that blocks a plan without `--allow-deletions`, if any: a large loss more likely is an incomplete reading. */
export function deletionFault(
  { deletions, received, before, removedMembers }: Plan,
  gate: DeletionGate,
): SyncFailure | undefined {
  if (received === 0 && before.groups > 0) {
    return new SyncFailure('directory_empty', `the directory has no groups, but ${before.groups} are stored`)
  }
  if (exceedsGate(deletions.length, before.groups, gate)) {
    const detail = `${deletions.length} of ${before.groups} groups would be removed`
    return new SyncFailure('deletion_threshold_exceeded', detail)
  }
  if (exceeds(removedMembers, before.members, { free: gate.members, percent: gate.percent })) {
    const detail = `${removedMembers} of ${before.members} memberships would be removed`
    return new SyncFailure('deletion_threshold_exceeded', detail)
  }
  return undefined
}

/** Whether this share of all groups exceeds the gate. */
export function exceedsGate(groups: number, all: number, gate: DeletionGate): boolean {
  return exceeds(groups, all, { free: gate.groups, percent: gate.percent })
}

// In integers, so that exactly the percentage is allowed.
function exceeds(
  lost: number,
  before: number,
  { free, percent }: { readonly free: number; readonly percent: number },
): boolean {
  return lost > free && lost * 100 > before * percent
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
