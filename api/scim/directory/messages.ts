/**
 * Parses SCIM messages (RFC 7643, 7644), leniently where directories differ and strictly where errors would delete
 * groups.
 */
import { isObject } from '../../untrusted/json.ts'
import { shorten } from '../../untrusted/shorten.ts'
import { SyncFailure } from '../failures.ts'
import { readReceivedMembers, type MemberList } from '../groups/members.ts'
import { asList, attribute, readFlag, readIdentifier, readText } from './attributes.ts'
import type { Warnings } from './warnings.ts'

/** A group in the directory. */
export interface RemoteGroup {
  /** The directory's `id`. */
  readonly scimId: string
  /** Its `externalId`, if it has one. */
  readonly externalId: string | null
  readonly displayName: string
  /** Null if the reply has no member attribute, which differs from an empty list. */
  readonly members: MemberList | null
}

/** One page of a list of groups. */
export interface Page {
  readonly groups: readonly RemoteGroup[]
  /** Rows of the page, including groups without a usable id. */
  readonly rows: number
  /** `totalResults`, if it is valid. */
  readonly total: number | undefined
  readonly nextCursor: string | undefined
}

/** The paging options in a `ServiceProviderConfig`. */
export interface PagingOffer {
  /** Whether the directory supports cursors (RFC 9865). */
  readonly cursor: boolean
  /** Maximum rows of a page, if the directory states it. */
  readonly maxPage: number | undefined
}

/** Known `scimType` values (RFC 7644, 3.12; RFC 9865, 2.1). Others are not repeated in messages. */
const SCIM_TYPES = new Set([
  'invalidFilter',
  'tooMany',
  'invalidSyntax',
  'invalidPath',
  'invalidValue',
  'invalidVers',
  'noTarget',
  'sensitive',
  'invalidCursor',
  'expiredCursor',
  'invalidCount',
])

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
  const groups: RemoteGroup[] = []
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

function readCount(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined
}

function nameOf(row: unknown): string {
  return (isObject(row) && readText(attribute(row, 'displayname'))) || 'without a name'
}

/** Reads one group; undefined without a usable id. */
export function readGroup(body: unknown, warnings: Warnings): RemoteGroup | undefined {
  const row = isObject(body) ? body : {}
  const scimId = readIdentifier(attribute(row, 'id'))
  const displayName = readText(attribute(row, 'displayname'))?.trim()
  // These two would climb out of the request path.
  if (scimId === undefined || scimId === '.' || scimId === '..') {
    return undefined
  }
  const { list: members, withoutId, oddAttributes } = readReceivedMembers(attribute(row, 'members'))
  if (withoutId > 0) warnings.add('member_without_id', scimId)
  const isOddName = displayName === undefined && attribute(row, 'displayname') !== undefined
  if (oddAttributes > 0 || isOddName) warnings.add('odd_attribute', scimId)
  const externalId = readIdentifier(attribute(row, 'externalid')) ?? null
  return { scimId, externalId, displayName: displayName || scimId, members }
}

/** A group in log messages. */
export function groupCalled(scimId: string): string {
  return `the group "${shorten(scimId)}"`
}

export function readPagingOffer(body: unknown): PagingOffer {
  const config = isObject(body) ? body : {}
  const [pagination, filter] = [attribute(config, 'pagination'), attribute(config, 'filter')]
  const limits = [
    isObject(pagination) ? readCount(attribute(pagination, 'maxpagesize')) : undefined,
    isObject(filter) ? readCount(attribute(filter, 'maxresults')) : undefined,
  ].filter((limit) => limit !== undefined && limit > 0)
  return {
    cursor: isObject(pagination) && readFlag(attribute(pagination, 'cursor')) === true,
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
