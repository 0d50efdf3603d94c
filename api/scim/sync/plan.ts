/** What a sync has to change: worked out from the local and the remote groups, without touching either. */
import type { RemoteGroup } from '../directory/messages.ts'

/** A group as the store has it; a deleted one keeps its row, and comes back to life under its id. */
export interface LocalGroup {
  readonly id: string
  readonly scimId: string
  readonly externalId: string | null
  readonly displayName: string
  /** Of the members as last supplied; null, like the count, when none ever were. */
  readonly memberDigest: string | null
  readonly memberCount: number | null
  readonly createdAt: string
  readonly deleted: boolean
}

/** One group to be written. */
export interface Change {
  /** The group it was; null for one that is new. */
  readonly local: LocalGroup | null
  readonly remote: RemoteGroup
  /** Whether the list of members is to be written too. */
  readonly withMembers: boolean
}

export interface Plan {
  readonly changes: readonly Change[]
  /** Groups that the directory no longer has. */
  readonly deletions: readonly LocalGroup[]
  /** Groups that the directory named. */
  readonly received: number
  /** Groups present once the plan is carried out: these, and the local ones that may not be deleted. */
  readonly present: number
  /** What stood before, members only of the groups that stay: what goes is measured by it. */
  readonly before: { readonly groups: number; readonly members: number }
}

interface PlanOptions {
  /** Whether what the directory does not name is deleted. */
  readonly mayDelete: boolean
  /** Whether lists of members that are empty in every group are believed; otherwise they count as not supplied. */
  readonly trustEmptiness: boolean
  /** The directory's ids of groups that it has and does not name: these are not the former selves of others. */
  readonly unlisted?: ReadonlySet<string>
}

/** The changes that turn the local groups into the remote ones. */
export function planSync(
  local: readonly LocalGroup[],
  remote: Iterable<RemoteGroup>,
  { mayDelete, trustEmptiness, unlisted = new Set() }: PlanOptions,
): Plan {
  const groups = trustEmptiness ? [...remote] : withoutEmptiness([...remote])
  const pairs = matchGroups(local, groups, unlisted)
  const matched = new Set(pairs.map((pair) => pair.local))
  const living = local.filter((group) => !group.deleted)
  const absent = living.filter((group) => !matched.has(group))
  const staying = mayDelete ? living.filter((group) => matched.has(group)) : living
  return {
    changes: pairs.filter(isChange).map((pair) => ({ ...pair, withMembers: hasNewMembers(pair) })),
    deletions: mayDelete ? absent : [],
    received: groups.length,
    present: groups.length + (mayDelete ? 0 : absent.length),
    before: { groups: living.length, members: sum(staying.map((group) => group.memberCount ?? 0)) },
  }
}

/**
 * The directory's ids of the groups that a plan takes for gone: those it deletes, and those in whose place it puts a
 * group that was made anew.
 */
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

// Some directories return empty lists of members always, which says nothing about the members.
function withoutEmptiness(groups: readonly RemoteGroup[]): readonly RemoteGroup[] {
  const isEmptyThroughout = groups.every((group) => (group.members?.count ?? 0) === 0)
  return isEmptyThroughout ? groups.map((group) => ({ ...group, members: null })) : groups
}

// By the directory's id; then, for a group that was made anew there, by its externalId. Never by name.
function matchGroups(
  local: readonly LocalGroup[],
  remote: readonly RemoteGroup[],
  unlisted: ReadonlySet<string>,
): Pair[] {
  const byScimId = new Map(local.map((group) => [group.scimId, group]))
  const remoteIds = new Set(remote.map((group) => group.scimId))
  const left = local.filter(({ scimId }) => !remoteIds.has(scimId) && !unlisted.has(scimId))
  const living = byExternalId(left.filter((group) => !group.deleted))
  const deleted = byExternalId(left.filter((group) => group.deleted))
  const anew = byExternalId(remote.filter((group) => !byScimId.has(group.scimId)))
  return remote.map((group) => {
    const sameId = byScimId.get(group.scimId)
    if (sameId !== undefined) return { local: sameId, remote: group }
    const { externalId } = group
    if (externalId === null || anew.get(externalId) === undefined) return { local: null, remote: group }
    return { local: living.get(externalId) ?? deleted.get(externalId) ?? null, remote: group }
  })
}

// Only where it names one group: an externalId that several share identifies none of them.
function byExternalId<Group extends { readonly externalId: string | null }>(
  groups: readonly Group[],
): Map<string, Group | undefined> {
  const found = new Map<string, Group | undefined>()
  for (const group of groups) {
    const { externalId } = group
    if (externalId !== null) found.set(externalId, found.has(externalId) ? undefined : group)
  }
  return found
}

function isChange(pair: Pair): boolean {
  const { local, remote } = pair
  return (
    local === null ||
    local.deleted ||
    local.scimId !== remote.scimId ||
    local.externalId !== remote.externalId ||
    local.displayName !== remote.displayName ||
    hasNewMembers(pair)
  )
}

// A list that was not supplied leaves the stored one as it is.
function hasNewMembers({ local, remote }: Pair): boolean {
  return remote.members !== null && remote.members.digest !== local?.memberDigest
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
