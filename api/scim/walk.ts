/**
 * Reads the list of groups to its end, by one way of paging after the other: by cursor (RFC 9865), by index (RFC 7644,
 * 3.4.2.4), in smaller pages, or without any.
 */
import { BRIEF, type DirectoryClient, type Patience, type Query, type SyncLimits } from './client.ts'
import { orFailure, SyncFailure, type Failure } from './failures.ts'
import { readPage, type ListOffer, type Page } from './messages.ts'

export interface WalkOptions {
  readonly client: DirectoryClient
  readonly limits: SyncLimits
  readonly offer: ListOffer
  /** Whether to request members with the groups. */
  readonly withMembers: boolean
  /** Receives each page, some groups several times; `false` ends the walk. */
  readonly take: (page: Page, walk: Walk) => Promise<boolean>
}

/** For directories that return members on request only (RFC 7643, 7: `returned`), as Keycloak does. */
export const ON_REQUEST = { attributes: 'externalId,displayName,members' }

type Failures = ReadonlySet<Failure>
/** Failures after which another way to list may work: servers reject parameters, and break off large pages. */
const MOVES_ON: Failures = new Set(['directory_invalid_response', 'directory_too_large'])
/** At the first page also these: in the middle, a way that works is not given up for a server that fails. */
const STARTS_ANEW: Failures = new Set(['directory_failing', 'directory_unreachable'])
/** Repeating pages prove nothing about a single page; after a page that is too large, only smaller ones help. */
const NEEDS_COUNT: Failures = new Set(['directory_incomplete', 'directory_too_large'])

function isOf(failed: SyncFailure | undefined, failures: Failures): boolean {
  return failed !== undefined && failures.has(failed.failure)
}

/**
 * Walks over all groups. `more` is added to each query.
 * @throws {SyncFailure} if the list is unreadable, endless, or repeats its first page.
 */
export async function walkGroups(options: WalkOptions, more: Query = {}): Promise<Walk> {
  let failed: SyncFailure | undefined
  let unpaged: Walk | undefined
  for (const way of waysToList(options)) {
    if (!mayHelp(way, failed, unpaged)) continue
    const walk = new Walk({ ...way, ...more })
    const fault = await follow(walk, options, failed)
    if (failed === undefined || fault?.failure === 'directory_incomplete') failed = fault
    if (fault !== undefined) continue
    if (!walk.isRepeating) return walk
    unpaged = walk
  }
  if (unpaged !== undefined) return unpaged
  throw failed ?? new SyncFailure('internal', 'no way to list groups')
}

function mayHelp(way: Query, failed: SyncFailure | undefined, unpaged: Walk | undefined): boolean {
  if (unpaged !== undefined) return 'cursor' in way
  return way['count'] !== undefined || !isOf(failed, NEEDS_COUNT)
}

/** The queries of a first page, the best first. */
function waysToList({ offer, limits, withMembers }: WalkOptions): Query[] {
  const most = Math.min(limits.pageSizes[0] ?? 1, offer.maxPage)
  const sizes = [most, ...limits.pageSizes.filter((size) => size < most)].map(String)
  const cursor = [...sizes.map((count) => ({ cursor: '', count })), { cursor: '' }]
  const index = [...sizes.map((count) => ({ startIndex: '1', count })), { startIndex: '1' }]
  // Some directories have cursors without announcing them: they are tried when index requests fail.
  const ways: Query[] = offer.cursor ? [...cursor, ...index, {}] : [...index, ...cursor.slice(0, 1), {}]
  return withMembers ? ways : ways.flatMap((way) => [{ ...way, excludedAttributes: 'members' }, way])
}

/** Follows a list to its end after another way has `failed`. Resolves to a failure after which another way may work. */
async function follow(
  walk: Walk,
  options: WalkOptions,
  failed: SyncFailure | undefined,
): Promise<SyncFailure | undefined> {
  const { limits, take } = options
  // Once a way has failed in spite of retries, every other one is tried once.
  const patience = isOf(failed, STARTS_ANEW) ? BRIEF : limits
  for (let asked = 0; asked < limits.pages; asked += 1) {
    const page = await orFailure((asked === 0 ? requestFirst : requestNext)(walk, options, patience))
    if (page instanceof SyncFailure) {
      // Once the total is reached, a failing page is not a missing one.
      if (walk.isTotalReached()) return undefined
      if (isOf(page, MOVES_ON) || (asked === 0 && isOf(page, STARTS_ANEW))) return page
      throw page
    }
    walk.add(page)
    const goesOn = await take(page, walk)
    if (!goesOn || walk.isLast(page)) return walk.repetition(failed)
    walk.advance(page)
  }
  throw new SyncFailure('directory_too_large', `more than ${limits.pages} pages of groups`)
}

/** Requests the first page and, if it has no members, requests them once by name: the walk keeps what returns some. */
async function requestFirst(walk: Walk, options: WalkOptions, patience: Patience): Promise<Page> {
  const { client, offer, withMembers } = options
  const page = await requestNext(walk, options, patience)
  // A directory that ignores the parameter returns a first page like any other.
  if ('cursor' in walk.query && !offer.cursor && page.nextCursor === undefined) {
    throw refusal('no cursor in the reply to a request for one')
  }
  if (!withMembers || page.groups.length === 0 || hasMembers(page)) return page
  const query = { ...walk.query, ...ON_REQUEST }
  const named = await orFailure(requestPage(client, query, BRIEF))
  if (named instanceof SyncFailure || !hasMembers(named)) return page
  walk.query = query
  return named
}

async function requestNext({ query }: Walk, { client }: WalkOptions, patience: Patience): Promise<Page> {
  return await requestPage(client, query, patience)
}

function hasMembers({ groups }: Page): boolean {
  return groups.some(({ members }) => members?.length !== 0)
}

/** Requests one page of groups. */
export async function requestPage(client: DirectoryClient, query: Query, patience: Patience): Promise<Page> {
  const { status, body } = await client.get('/Groups', query, patience)
  if (status === 200) return readPage(body)
  throw refusal(`status ${status}`)
}

function refusal(detail: string): SyncFailure {
  return new SyncFailure('directory_invalid_response', `GET /Groups: ${detail}`)
}

/** A walk over the list: its position, and what it has received. */
export class Walk {
  /** The query of the next page. */
  query: Query
  /** The directory's last total, if any. */
  total: number | undefined
  /** The pages with new groups, their rows, and the rows without a usable id. */
  pages = 0
  rows = 0
  unusable = 0
  /** Whether two pages had different totals: groups changed meanwhile, and rows may have been skipped. */
  isUnsteady = false
  /** Whether the second page repeats the first, so that the directory may lack paging. */
  isRepeating = false
  // Of this walk alone: in a second walk every group is known.
  readonly #seen = new Set<string>()
  readonly #cursors = new Set<string>()
  #bringsNothing = false

  constructor(way: Query) {
    this.query = way
  }

  /** The different groups. */
  get groups(): number {
    return this.#seen.size
  }

  /** Whether the directory marked the last page: a cursor walk that ended. */
  get isEndStated(): boolean {
    return 'cursor' in this.query
  }

  /**
   * The fault of a walk that repeats its first page. Without fault it may have all groups: if the page had another number
   * of rows than requested, and no other walk had this fault.
   */
  repetition(failed: SyncFailure | undefined): SyncFailure | undefined {
    const isStuck = this.rows === this.#count || failed?.failure === 'directory_incomplete'
    if (!this.isRepeating || !isStuck) return undefined
    const detail = `${this.groups} groups, and the same ones on the next page with any paging`
    return new SyncFailure('directory_incomplete', detail)
  }

  get #count(): number {
    return Number(this.query['count'] ?? 0)
  }

  add(page: Page): void {
    const known = this.#seen.size
    for (const { scim_id } of page.groups) this.#seen.add(scim_id)
    this.#bringsNothing = this.#seen.size === known
    this.isUnsteady ||= this.total !== undefined && page.total !== undefined && this.total !== page.total
    this.total = page.total ?? this.total
    if (this.pages > 0 && this.#bringsNothing) {
      this.isRepeating = this.pages === 1 && page.rows > 0 && !this.isEndStated
      return
    }
    this.pages += 1
    this.rows += page.rows
    this.unusable += page.unusable.length
  }

  isTotalReached(): boolean {
    return this.total !== undefined && this.rows >= this.total
  }

  /**
   * Whether the list ends with this page. By index it goes on until a page has nothing new, even past the total, since in
   * some directories the total is the page size. A short page that reaches the total ends it, since some directories fail
   * on a page past the end.
   */
  isLast({ nextCursor, rows }: Page): boolean {
    if (nextCursor !== undefined) return false
    const isShort = rows < this.#count
    return !('startIndex' in this.query) || this.#bringsNothing || (isShort && this.isTotalReached())
  }

  /** By index the next page starts after the rows received, whatever the directory calls them. */
  advance({ nextCursor }: Page): void {
    const { startIndex: _former, ...rest } = this.query
    if (nextCursor === undefined) this.query = { ...rest, startIndex: String(this.rows + 1) }
    else if (this.#cursors.has(nextCursor)) {
      throw new SyncFailure('directory_incomplete', 'the cursors of the list of groups lead in a circle')
    } else {
      this.#cursors.add(nextCursor)
      this.query = { ...rest, cursor: nextCursor }
    }
  }
}
