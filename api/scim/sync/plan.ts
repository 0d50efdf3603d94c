/** Computes the changes of a sync from the local and the remote groups. */
import type { RemoteGroup } from '../directory/messages.ts'

/** A group in the store; a deleted one keeps its row, and is restored under its id. */
export interface LocalGroup {
  readonly id: string
  readonly scimId: string
  readonly externalId: string | null
  readonly displayName: string
  /** Of the last supplied members; null, like the count, if none were ever supplied. */
  readonly memberDigest: string | null
  readonly memberCount: number | null
  readonly createdAt: string
  readonly deleted: boolean
}

/** One group to write. */
export interface Change {
  /** The stored group; null for a new one. */
  readonly local: LocalGroup | null
  readonly remote: RemoteGroup
  /** Whether to write the list of members too. */
  readonly withMembers: boolean
}

export interface Plan {
  readonly changes: readonly Change[]
  /** Groups that the directory lacks. */
  readonly deletions: readonly LocalGroup[]
  /** Number of groups from the directory. */
  readonly received: number
  /** Groups after the plan: these, and local ones that may not be deleted. */
  readonly present: number
  /** The state before, with members only of groups that stay: removals are measured against it. */
  readonly before: { readonly groups: number; readonly members: number }
}

interface PlanOptions {
  /** Whether absent groups are deleted. */
  readonly mayDelete: boolean
  /** Whether empty member lists in every group are accepted; otherwise they count as not supplied. */
  readonly trustEmptiness: boolean
  /** Ids of groups that exist in the directory but in no list: no other group takes their place. */
  readonly unlisted?: ReadonlySet<string>
}

/** The changes from the local groups to the remote ones. */
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

// Some directories always return empty member lists, which proves nothing.
function withoutEmptiness(groups: readonly RemoteGroup[]): readonly RemoteGroup[] {
  const isEmptyThroughout = groups.every((group) => (group.members?.count ?? 0) === 0)
  return isEmptyThroughout ? groups.map((group) => ({ ...group, members: null })) : groups
}

// Matches by the directory's id, then, for a recreated group, by its externalId. Never by name.
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

// Only unique ones: a shared externalId identifies no group.
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

// An unsupplied list leaves the stored one unchanged.
function hasNewMembers({ local, remote }: Pair): boolean {
  return remote.members !== null && remote.members.digest !== local?.memberDigest
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
