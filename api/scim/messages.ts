/**
 * Parses SCIM messages (RFC 7643, 7644), leniently where directories differ and strictly where errors would delete
 * groups.
 */
import { isObject, type JsonObject } from '../untrusted/json.ts'
import { asList, attribute, isTrue, readCount, readIdentifier, readText } from './attributes.ts'
import { SyncFailure } from './failures.ts'
import type { Warnings } from './warnings.ts'

/** One member: a user or a nested group. */
export interface Member {
  /** The directory's id of the user or group. */
  readonly id: string
  /** The directory's type, usually `User` or `Group`; null without one. */
  readonly type: string | null
  readonly displayName: string | null
}

/**
 * The members in a reply. `none`: the attribute is missing, null or empty, which is the same (RFC 7643, 2.5);
 * `unreadable`: it has no usable member.
 */
type ReceivedMembers = readonly Member[] | 'none' | 'unreadable'

/** A group in a reply. */
export interface ReceivedGroup {
  /** The directory's `id`. */
  readonly scimId: string
  /** Its `externalId`, if it has one. */
  readonly externalId: string | null
  readonly displayName: string
  readonly members: ReceivedMembers
}

/** One page of a list of groups. */
export interface Page {
  readonly groups: readonly ReceivedGroup[]
  /** Rows of the page, including groups without a usable id. */
  readonly rows: number
  /** `totalResults`, if it is valid. */
  readonly total: number | undefined
  readonly nextCursor: string | undefined
}

/** What a `ServiceProviderConfig` offers for lists. */
export interface ListOffer {
  /** Whether the directory supports cursors (RFC 9865). */
  readonly cursor: boolean
  /** Whether it sorts by `sortBy`. */
  readonly sort: boolean
  /** Maximum rows of a page, if the directory states it. */
  readonly maxPage: number | undefined
}

/** Known `scimType` values (RFC 7644, 3.12; RFC 9865, 2.1). Others are not repeated in messages. */
const SCIM_TYPES = new Set(
  (
    'invalidFilter tooMany invalidSyntax invalidPath invalidValue invalidVers noTarget sensitive invalidCursor ' +
    'expiredCursor invalidCount'
  ).split(' '),
)

/**
 * Reads one page of `GET /Groups`. Groups without a usable id are left out, with a warning.
 * @throws {SyncFailure} if it is not a list of groups.
 */
export function readPage(body: unknown, warnings: Warnings): Page {
  if (!isObject(body)) throw malformed('a list of groups is not an object')
  const total = readCount(attribute(body, 'totalresults'))
  const resources = attribute(body, 'resources')
  // An empty list may omit `Resources` (RFC 7644, 3.4.2), but then needs totalResults.
  if (resources === undefined && total === undefined) {
    throw malformed('a list of groups has neither Resources nor totalResults')
  }
  if (resources !== undefined && typeof resources !== 'object') throw malformed('Resources is not a list')
  const rows = asList(resources)
  const groups: ReceivedGroup[] = []
  for (const row of rows) {
    const group = readGroup(row, warnings)
    if (group === undefined) warnings.add('group_without_id', nameOf(row))
    else groups.push(group)
  }
  return { groups, rows: rows.length, total, nextCursor: readCursor(attribute(body, 'nextcursor')) }
}

// An invalid cursor must not count as none: the first page would pass for the whole list.
function readCursor(value: unknown): string | undefined {
  if (value === undefined || value === '') return undefined
  if (typeof value === 'string') return value
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  throw malformed('nextCursor of a list of groups is not text')
}

function nameOf(row: unknown): string {
  return (isObject(row) && readText(attribute(row, 'displayname'))) || 'without a name'
}

/** Reads one group; undefined without a usable id. */
export function readGroup(body: unknown, warnings: Warnings): ReceivedGroup | undefined {
  const row = isObject(body) ? body : {}
  const scimId = readIdentifier(attribute(row, 'id'))
  // The latter two would climb out of the request path.
  if (scimId === undefined || scimId === '.' || scimId === '..') return undefined
  const displayName = readText(attribute(row, 'displayname'))?.trim()
  if (displayName === undefined && attribute(row, 'displayname') !== undefined) {
    warnings.add('odd_attribute', scimId)
  }
  const externalId = readIdentifier(attribute(row, 'externalid')) ?? null
  const members = readMembers(attribute(row, 'members'), scimId, warnings)
  return { scimId, externalId, displayName: displayName || scimId, members }
}

function readMembers(value: unknown, scimId: string, warnings: Warnings): ReceivedMembers {
  if (value === undefined) return 'none'
  if (typeof value !== 'object') {
    warnings.add('odd_attribute', scimId)
    return 'unreadable'
  }
  const entries = asList(value).filter((entry) => !isRemoved(entry))
  const members: Member[] = []
  for (const entry of entries) {
    const member = readMember(entry, () => warnings.add('odd_attribute', scimId))
    if (member === undefined) warnings.add('member_without_id', scimId)
    else members.push(member)
  }
  if (members.length > 0) return members
  return entries.length === 0 ? 'none' : 'unreadable'
}

/** SCIM 1.1 marks removed members instead of omitting them. */
function isRemoved(entry: unknown): boolean {
  return isObject(entry) && readText(attribute(entry, 'operation'))?.toLowerCase() === 'delete'
}

function readMember(entry: unknown, onOddAttribute: () => void): Member | undefined {
  // Some directories send the ids alone, others the address alone, which ends in the id.
  const attributes: JsonObject = isObject(entry) ? entry : { value: entry }
  const reference = readReference(attribute(attributes, '$ref'))
  const id = readIdentifier(attribute(attributes, 'value')) ?? reference?.id
  if (id === undefined) return undefined
  const text = (name: string) => {
    const value = attribute(attributes, name)
    const read = readText(value)
    if (value !== undefined && read === undefined) onOddAttribute()
    return read
  }
  return { id, type: text('type') ?? reference?.type ?? null, displayName: text('display') ?? null }
}

const REFERENCE = /(?:(?:^|\/)(user|group)s\/)?([^/]+)\/?$/i

/** The id at the end of an address, and the type that its path states: `…/Groups/7`. */
function readReference(reference: unknown): { id: string | undefined; type: string | undefined } | undefined {
  if (typeof reference !== 'string' || reference.length > 4096) return undefined
  const [, kind, last = ''] = REFERENCE.exec(reference) ?? []
  const types: Readonly<Record<string, string>> = { user: 'User', group: 'Group' }
  try {
    return { id: readIdentifier(decodeURIComponent(last)), type: types[kind?.toLowerCase() ?? ''] }
  } catch {
    return undefined
  }
}

export function readListOffer(body: unknown): ListOffer {
  const config = isObject(body) ? body : {}
  const part = (name: string): JsonObject => {
    const value = attribute(config, name)
    return isObject(value) ? value : {}
  }
  const limits = [
    readCount(attribute(part('pagination'), 'maxpagesize')),
    readCount(attribute(part('filter'), 'maxresults')),
  ].filter((limit) => limit !== undefined && limit > 0)
  return {
    cursor: isTrue(attribute(part('pagination'), 'cursor')),
    sort: isTrue(attribute(part('sort'), 'supported')),
    maxPage: limits.length === 0 ? undefined : Math.min(...limits.map(Number)),
  }
}

/** The `scimType` of an error reply, such as `expiredCursor`. */
export function scimTypeOf(body: unknown): string | undefined {
  const type = isObject(body) ? attribute(body, 'scimtype') : undefined
  return typeof type === 'string' && SCIM_TYPES.has(type) ? type : undefined
}

function malformed(detail: string): SyncFailure {
  return new SyncFailure('directory_invalid_response', detail)
}
