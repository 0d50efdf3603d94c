/**
 * Reads SCIM messages (RFC 7643, 7644): leniently where directories differ, since one odd entry must not stop a directory
 * of thousands, and strictly where errors would delete groups.
 */
import { unescape } from 'node:querystring'
import { z } from 'zod'
import { isObject } from '../untrusted/json.ts'
import { SyncFailure } from './failures.ts'

/** One member: a user or a nested group, with the directory's id and type (usually `User` or `Group`). */
export const memberSchema = z.object({
  id: z.string(),
  type: z.string().nullable(),
  display_name: z.string().nullable(),
})
export type Member = Readonly<z.infer<typeof memberSchema>>

/** A group in a reply, with the names of its columns in the store. */
export type ReceivedGroup = {
  /** The directory's `id`. */
  readonly scim_id: string
  readonly external_id: string | null
  readonly display_name: string
  /** Empty if the attribute is missing, null or empty, which is the same (RFC 7643, 2.5); null if it is unreadable. */
  readonly members: readonly Member[] | null
  /** Whether members without a usable id were left out. */
  readonly lacksMembers: boolean
}

/** One page of a list of groups. */
export type Page = {
  readonly groups: readonly ReceivedGroup[]
  /** Rows of the page, and the names of those without a usable id. */
  readonly rows: number
  readonly unusable: readonly string[]
  /** `totalResults`, if it is valid. */
  readonly total: number | undefined
  readonly nextCursor: string | undefined
}

/**
 * Reads one page of `GET /Groups`.
 * @throws SyncFailure if it is not a list of groups.
 */
export function readPage(body: unknown): Page {
  const total = readCount(attribute(body, 'totalResults'))
  const resources = attribute(body, 'Resources')
  const cursor = attribute(body, 'nextCursor') || undefined
  const nextCursor = readId(cursor, MAX_CURSOR_BYTES)
  // An empty list may omit `Resources` (RFC 7644, 3.4.2), but then needs totalResults.
  if (typeof resources !== 'object' && (resources !== undefined || total === undefined))
    throw new SyncFailure('directory_invalid_response', 'a list of groups has no list of Resources')
  // An invalid cursor must not count as none: the first page would pass for the whole list.
  if (cursor !== undefined && nextCursor === undefined)
    throw new SyncFailure('directory_invalid_response', 'nextCursor of a list of groups is not text')
  const rows = asList(resources)
  const groups = rows.map(readGroup)
  const nameless = rows.filter((_row, index) => groups[index] === undefined)
  return {
    groups: groups.filter((group) => group !== undefined),
    rows: rows.length,
    unusable: nameless.map((row) => readText(attribute(row, 'displayName')) ?? 'without a name'),
    total,
    nextCursor,
  }
}

/** Reads one group; undefined without a usable id. */
export function readGroup(row: unknown): ReceivedGroup | undefined {
  const scim_id = readId(attribute(row, 'id'))
  // The latter two would climb out of the request path.
  if (scim_id === undefined || scim_id === '.' || scim_id === '..') return undefined
  const list = attribute(row, 'members')
  // SCIM 1.1 marks removed members instead of omitting them.
  const entries = asList(list).filter((entry) => attribute(entry, 'operation') !== 'delete')
  const members = entries.map(readMember).filter((member) => member !== undefined)
  const isUnreadable = (members.length === 0 && entries.length > 0) || typeof (list ?? {}) !== 'object'
  return {
    scim_id,
    external_id: readId(attribute(row, 'externalId')) ?? null,
    display_name: readText(attribute(row, 'displayName'))?.trim() || scim_id,
    members: isUnreadable ? null : members,
    lacksMembers: members.length < entries.length,
  }
}

const REFERENCE = /(?:(?:^|\/)(user|group)s\/)?([^/]+)\/?$/i
const TYPES = ['User', 'Group'] as const

/** A member as an object, as its id alone, or as its address alone, which ends in `Users/` or `Groups/` and the id. */
function readMember(entry: unknown): Member | undefined {
  const reference = attribute(entry, '$ref')
  const [, kind, last = ''] = REFERENCE.exec(typeof reference === 'string' ? reference : '') ?? []
  const id = readId(isObject(entry) ? attribute(entry, 'value') : entry) ?? readId(unescape(last))
  if (id === undefined) return undefined
  const type = readText(attribute(entry, 'type')) ?? kind ?? null
  // Types are compared without case (RFC 7643, 8.7.1), and some directories write them small.
  const usual = TYPES.find((word) => word.toLowerCase() === type?.toLowerCase())
  return { id, type: usual ?? type, display_name: readText(attribute(entry, 'display')) ?? null }
}

/** Whether a `ServiceProviderConfig` announces cursors (RFC 9865), which some write as text. */
export function offersCursors(config: unknown): boolean {
  return String(attribute(attribute(config, 'pagination'), 'cursor')).toLowerCase() === 'true'
}

/** An attribute; undefined if it is missing or null. Directories send names in any case (RFC 7643, 2.1). */
function attribute(object: unknown, name: string): unknown {
  if (!isObject(object)) return undefined
  if (Object.hasOwn(object, name)) return object[name] ?? undefined
  const wanted = name.toLowerCase()
  // No array of names: most members lack some attributes, and a page has tens of thousands.
  for (const key in object) {
    if (key.length === name.length && key.toLowerCase() === wanted) return object[key] ?? undefined
  }
  return undefined
}

/** A list; directories may send a single entry without brackets. */
function asList(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  return value === undefined ? [] : [value]
}

const MAX_TEXT = 256
// PostgreSQL limits an index row to 2704 bytes over all its columns.
const MAX_ID_BYTES = 1024
// Servers limit the line of a request to 8 KiB and more.
const MAX_CURSOR_BYTES = 8192

/** An identifier, unchanged, or undefined. */
function readId(value: unknown, most = MAX_ID_BYTES): string | undefined {
  const id = Number.isSafeInteger(value) ? String(value) : value
  if (typeof id !== 'string' || id === '' || id.length > most) return undefined
  const isUsable = Buffer.byteLength(id) <= most && id.isWellFormed() && !/\p{Cc}/u.test(id)
  return isUsable ? id : undefined
}

/** Text that every store keeps unchanged: well-formed, without control characters, at most 256 characters. */
function readText(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'string') return undefined
  // Copied only if it is cut, since a slice would keep the whole text in memory, and copies are slow.
  const text =
    value.length <= MAX_TEXT ? value : Buffer.from(value.slice(0, MAX_TEXT).toWellFormed()).toString()
  return text.toWellFormed().replaceAll(/\p{Cc}/gu, ' ')
}

/** A number of rows, which some directories send as text. */
function readCount(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined
}
