/**
 * Reads the list of groups to its end, with the directory's paging: by index (RFC 7644, 3.4.2.4), by cursor (RFC 9865)
 * or none.
 */
import type { DirectoryClient, Query, SyncLimits } from './client.ts'
import { isOfReply, SyncFailure, type Failure } from './failures.ts'
import { isCursorLost, readPage, type ListOffer, type Page } from './messages.ts'

/** Called after each page with the groups read so far, and the directory's total if it states one. */
export type Progress = (read: number, total: number | undefined) => void

export interface WalkOptions {
  readonly client: DirectoryClient
  readonly limits: SyncLimits
  readonly offer: ListOffer
  /** Whether to request members with the groups. */
  readonly withMembers: boolean
  readonly progress: Progress
}

/** Receives each page; `false` ends the walk. */
export type TakePage = (page: Page) => Promise<boolean | void>

/** Why another way is tried. */
interface Refusal {
  readonly refused: SyncFailure
  readonly hasLostCursor: boolean
}

const RESTARTS = 2
/** For directories that return members on request only (RFC 7643, 7: `returned`), as Keycloak does. */
export const ON_REQUEST = { attributes: 'externalId,displayName,members' }

/** Failures after which another way to list may work: servers reject parameters, and break off large pages. */
const MOVES_ON: ReadonlySet<Failure> = new Set(['directory_invalid_response', 'directory_too_large'])
const STARTS_ANEW: ReadonlySet<Failure> = new Set(['directory_failing', 'directory_unreachable'])

/**
 * Walks over all groups and passes each page to `take`, some groups several times. `more` is added to each query.
 * @throws {SyncFailure} if the list is unreadable or endless.
 */
export async function walkGroups(options: WalkOptions, take: TakePage, more: Query = {}): Promise<Walk> {
  let repeating: Walk | undefined
  let failed: SyncFailure | undefined
  for (const way of waysToList(options, more)) {
    if (!mayHelp(way, repeating, failed)) continue
    // Once a way has failed in spite of retries, every other one is tried once.
    const tries = failed !== undefined && STARTS_ANEW.has(failed.failure) ? 1 : options.limits.tries
    const outcome = await walkWithRestarts(options, way, take, tries)
    if ('refused' in outcome) failed ??= outcome.refused
    else if (outcome.repeats === undefined) return outcome
    else repeating ??= outcome
  }
  if (repeating !== undefined) return repeating
  throw failed ?? new SyncFailure('internal', 'no way to list groups')
}

/** The queries of a first page, the best first. */
function waysToList({ offer, limits, withMembers }: WalkOptions, more: Query): Query[] {
  const most = Math.min(limits.pageSizes[0] ?? 1, offer.maxPage)
  const sizes = [most, ...limits.pageSizes.filter((size) => size < most)].map(String)
  const cursor = [...sizes.map((count) => ({ cursor: '', count })), { cursor: '' }]
  const index = [...sizes.map((count) => ({ startIndex: '1', count })), { startIndex: '1' }]
  // Some directories have cursors without announcing them: they are tried when index requests fail.
  const ways: Query[] = offer.cursor ? [...cursor, ...index, {}] : [...index, ...cursor.slice(0, 1), {}]
  const all = ways.map((way) => ({ ...way, ...more }))
  return withMembers ? all : all.flatMap((way) => [{ ...way, excludedAttributes: 'members' }, way])
}

// Repeating pages prove nothing about a single page; after a page that is too large, only smaller ones help.
function mayHelp(way: Query, repeating: Walk | undefined, failed: SyncFailure | undefined): boolean {
  if (repeating?.repeats === 'beyond') return 'cursor' in way
  const needsCount = repeating !== undefined || failed?.failure === 'directory_too_large'
  return !needsCount || 'count' in way
}

async function walkWithRestarts(options: WalkOptions, way: Query, take: TakePage, tries: number) {
  for (let restarts = 0; ; restarts += 1) {
    const outcome = await walk(options, way, take, tries)
    if (!('refused' in outcome) || !outcome.hasLostCursor || restarts === RESTARTS) return outcome
  }
}

async function walk(
  options: WalkOptions,
  way: Query,
  take: TakePage,
  tries: number,
): Promise<Walk | Refusal> {
  const position = new Walk(way)
  for (let asked = 0; asked < options.limits.pages; asked += 1) {
    const { query } = position
    const received = await (asked === 0 ? requestFirst(options, query, tries) : requestPage(options, query))
    // Once the total is reached, a failing page is not a missing one.
    if ('refused' in received) return position.isTotalReached() ? position : movesOn(received, asked)
    const { page, named = {} } = received
    // A directory that ignores the parameter returns a first page like any other.
    const isGuess = 'cursor' in way && !options.offer.cursor && asked === 0
    if (isGuess && page.nextCursor === undefined) return refuse('no cursor in the reply to a request for one')
    position.take(page)
    const goesOn = await take(page)
    options.progress(position.groups, position.total)
    if (goesOn === false || position.isLast(page)) return position
    position.advance(page, named)
  }
  throw new SyncFailure('directory_too_large', `more than ${options.limits.pages} pages of groups`)
}

/** The refusal, if another way may help: at the first page also if the server fails. */
function movesOn(refusal: Refusal, asked: number): Refusal {
  const { failure } = refusal.refused
  // In the middle, a way that works is not given up for a server that fails.
  if (MOVES_ON.has(failure) || (asked === 0 && STARTS_ANEW.has(failure))) return refusal
  throw refusal.refused
}

/** A walk over the list: its position, and what it has received. */
export class Walk {
  /** The query of the first page, and of the next one. */
  readonly way: Query
  query: Query
  /** The directory's last total, if any. */
  total: number | undefined
  /** The pages with new groups, their rows, and the rows without a usable id. */
  pages = 0
  rows = 0
  unusable = 0
  /** Whether two pages had different totals: groups changed meanwhile, and rows may have been skipped. */
  isUnsteady = false
  // Of this walk alone: in a second walk every group is known.
  readonly #seen = new Set<string>()
  readonly #cursors = new Set<string>()
  #taken: Page[] = []
  #bringsNothing = false

  constructor(way: Query) {
    this.way = way
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
   * Set if the second page repeats the first, so that the directory may lack paging. `full`: the first page had as many
   * rows as requested, so there may be more; `beyond`: it had more than requested.
   */
  get repeats(): 'full' | 'beyond' | undefined {
    const [first, second, ...others] = this.#taken
    if (first === undefined || second === undefined || others.length > 0) return undefined
    if (!this.#bringsNothing || second.rows === 0 || this.isEndStated) return undefined
    return first.rows === this.#count ? 'full' : 'beyond'
  }

  get #count(): number {
    return Number(this.way['count'] ?? 0)
  }

  take(page: Page): void {
    const known = this.#seen.size
    for (const { scimId } of page.groups) this.#seen.add(scimId)
    this.#bringsNothing = this.#seen.size === known
    this.isUnsteady ||= this.total !== undefined && page.total !== undefined && this.total !== page.total
    this.total = page.total ?? this.total
    // The first three show whether pages repeat.
    if (this.#taken.length < 3) this.#taken.push({ ...page, groups: [] })
    if (this.#taken.length > 1 && this.#bringsNothing) return
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
  advance({ nextCursor }: Page, named: Query): void {
    const { startIndex: _former, ...rest } = { ...this.query, ...named }
    if (nextCursor === undefined) this.query = { ...rest, startIndex: String(this.rows + 1) }
    else if (this.#cursors.has(nextCursor)) {
      throw new SyncFailure('directory_incomplete', 'the cursors of the list of groups lead in a circle')
    } else {
      this.#cursors.add(nextCursor)
      this.query = { ...rest, cursor: nextCursor }
    }
  }
}

type Received = { readonly page: Page; readonly named?: Query } | Refusal

/** Requests the first page and, if it has no members, requests them once by name: the walk keeps what returns some. */
async function requestFirst(options: WalkOptions, query: Query, tries: number): Promise<Received> {
  const received = await requestPage(options, query, tries)
  const isBare = 'page' in received && received.page.groups.length > 0 && !hasMembers(received.page)
  if (!options.withMembers || !isBare) return received
  const named = await requestPage(options, { ...query, ...ON_REQUEST }, 1)
  return 'page' in named && hasMembers(named.page) ? { ...named, named: ON_REQUEST } : received
}

function hasMembers({ groups }: Page): boolean {
  return groups.some(({ members }) => members?.length !== 0)
}

/** Requests one page of groups. */
export async function requestPage(
  { client, limits }: Pick<WalkOptions, 'client' | 'limits'>,
  query: Query,
  tries = limits.tries,
): Promise<Received> {
  try {
    const { status, body } = await client.get('/Groups', query, { tries })
    if (status === 200) return { page: readPage(body) }
    return { ...refuse(`status ${status}`), hasLostCursor: isCursorLost(body) }
  } catch (error) {
    if (isOfReply(error)) return { refused: error, hasLostCursor: false }
    throw error
  }
}

function refuse(detail: string): Refusal {
  return {
    refused: new SyncFailure('directory_invalid_response', `GET /Groups: ${detail}`),
    hasLostCursor: false,
  }
}
