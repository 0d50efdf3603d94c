/** A group on both sides of a sync: in the store and in the directory. */
import { hash } from 'node:crypto'
import type { Member, ReceivedGroup } from './messages.ts'

/** A group in the store; a deleted one keeps its row, and is restored under its id. */
export interface LocalGroup {
  readonly id: string
  readonly scimId: string
  readonly externalId: string | null
  readonly displayName: string
  /** Of the last supplied members; null, like the count and the list, if none were ever supplied. */
  readonly memberDigest: string | null
  readonly memberCount: number | null
  /** The id of the stored list of members; null for an empty one too. */
  readonly memberList: string | null
  readonly createdAt: string
  readonly deleted: boolean
}

/** A group of the directory. Its members are `none` if the reply has none, and `unknown` if they were not read. */
export interface RemoteGroup extends Omit<ReceivedGroup, 'members'> {
  readonly members: MemberList | 'none' | 'unknown'
}

/** A list of members from the directory, beside the stored list of its group. */
export interface MemberList {
  /** Equal for equal lists. */
  readonly digest: string
  readonly count: number
  /** The staged list, or the equal stored one; null in a dry run, and for an empty one. */
  readonly listId: string | null
  /** Differences from the stored list, and the names of the first. */
  readonly joined: number
  readonly left: number
  readonly joinedNames: readonly string[]
  readonly leftNames: readonly string[]
}

/** Sorted by code units, which give the same order on every machine. Of repeated members the last one counts. */
export function sortUnique(members: readonly Member[]): readonly Member[] {
  const sorted = members.toSorted((a, b) => (a.id < b.id ? -1 : Number(a.id > b.id)))
  return sorted.filter(({ id }, index) => id !== sorted[index + 1]?.id)
}

/** Equal for equal lists. */
export function digestOf(members: readonly Member[]): string {
  const text = JSON.stringify(members.flatMap(({ id, type, displayName }) => [id, type, displayName]))
  return hash('sha256', text, 'base64url')
}

/** The list of a group without members. */
export const EMPTY_DIGEST = digestOf([])
