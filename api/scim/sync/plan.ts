/** What a sync has to change: worked out from our groups and theirs, without touching either. */
import type { TheirGroup } from '../directory/messages.ts'

/** A group as the store has it; a deleted one keeps its row, and comes back to life under its id. */
export interface OurGroup {
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
  readonly ours: OurGroup | null
  readonly theirs: TheirGroup
  /** Whether the list of members is to be written too. */
  readonly withMembers: boolean
}

export interface Plan {
  readonly changes: readonly Change[]
  /** Groups that the directory no longer has. */
  readonly deletions: readonly OurGroup[]
  /** Groups that the directory named. */
  readonly received: number
  /** Groups present once the plan is carried out: these, and ours that may not be deleted. */
  readonly present: number
  /** What stood before, members only of the groups that stay: what goes is measured by it. */
  readonly before: { readonly groups: number; readonly members: number }
}

interface PlanOptions {
  /** Whether what the directory does not name is deleted. */
  readonly mayDelete: boolean
  /** Whether lists of members that are empty in every group are believed; otherwise they count as not supplied. */
  readonly trustEmptiness: boolean
}

/** The changes that turn our groups into theirs. */
export function planSync(
  ours: readonly OurGroup[],
  theirs: Iterable<TheirGroup>,
  { mayDelete, trustEmptiness }: PlanOptions,
): Plan {
  const groups = trustEmptiness ? [...theirs] : withoutEmptiness([...theirs])
  const pairs = matchGroups(ours, groups)
  const matched = new Set(pairs.map((pair) => pair.ours))
  const living = ours.filter((group) => !group.deleted)
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
  const replaced = changes.flatMap(({ ours, theirs }) =>
    ours === null || ours.deleted || ours.scimId === theirs.scimId ? [] : [ours],
  )
  return [...deletions, ...replaced].map((group) => group.scimId)
}

interface Pair {
  readonly ours: OurGroup | null
  readonly theirs: TheirGroup
}

// Some directories return empty lists of members always, which says nothing about the members.
function withoutEmptiness(groups: readonly TheirGroup[]): readonly TheirGroup[] {
  const isEmptyThroughout = groups.every((group) => (group.members?.count ?? 0) === 0)
  return isEmptyThroughout ? groups.map((group) => ({ ...group, members: null })) : groups
}

// By the directory's id; then, for a group that was made anew there, by its externalId. Never by name.
function matchGroups(ours: readonly OurGroup[], theirs: readonly TheirGroup[]): Pair[] {
  const byScimId = new Map(ours.map((group) => [group.scimId, group]))
  const theirIds = new Set(theirs.map((group) => group.scimId))
  const left = ours.filter((group) => !theirIds.has(group.scimId))
  const living = byExternalId(left.filter((group) => !group.deleted))
  const deleted = byExternalId(left.filter((group) => group.deleted))
  const anew = byExternalId(theirs.filter((group) => !byScimId.has(group.scimId)))
  return theirs.map((group) => {
    const sameId = byScimId.get(group.scimId)
    if (sameId !== undefined) return { ours: sameId, theirs: group }
    const { externalId } = group
    if (externalId === null || anew.get(externalId) === undefined) return { ours: null, theirs: group }
    return { ours: living.get(externalId) ?? deleted.get(externalId) ?? null, theirs: group }
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
  const { ours, theirs } = pair
  return (
    ours === null ||
    ours.deleted ||
    ours.scimId !== theirs.scimId ||
    ours.externalId !== theirs.externalId ||
    ours.displayName !== theirs.displayName ||
    hasNewMembers(pair)
  )
}

// A list that was not supplied leaves ours as it is.
function hasNewMembers({ ours, theirs }: Pair): boolean {
  return theirs.members !== null && theirs.members.digest !== ours?.memberDigest
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
