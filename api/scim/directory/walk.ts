/**
 * Reads the list of groups to its end, with the directory's paging: by index (RFC 7644, 3.4.2.4), by cursor (RFC 9865)
 * or none.
 */
import { SyncFailure } from '../failures.ts'
import { isOfReply, type Answer, type DirectoryClient, type Query } from './http/client.ts'
import type { SyncLimits } from './limits.ts'
import { readPage, scimTypeOf, type Page, type PagingOffer, type RemoteGroup } from './messages.ts'
import { nextQuery, waysToList } from './paging.ts'
import type { Warnings } from './warnings.ts'

/** Called after each page with the groups read so far, and the directory's total if it states one. */
export type Progress = (read: number, total: number | undefined) => void

export interface WalkOptions {
  readonly client: DirectoryClient
  readonly limits: SyncLimits
  readonly offer: PagingOffer
  /** Whether to request members with the groups. */
  readonly withMembers: boolean
  readonly progress: Progress
  readonly warnings: Warnings
}

/** The result of a walk. */
export interface WalkEnd {
  /** The directory's last total, if any. */
  readonly total: number | undefined
  /** Rows of the pages with new groups, and the different groups among them. */
  readonly rows: number
  readonly groups: number
  /** Rows without a usable group. */
  readonly unusable: number
  /** Whether two pages had different totals: groups changed meanwhile, and rows may have been skipped. */
  readonly unsteady: boolean
  /** Whether the directory marked the last page: a cursor walk that ended. */
  readonly endStated: boolean
  /**
   * Set if the second page repeats the first, so that the directory may lack paging. `full`: the first page had as many
   * rows as requested, so there may be more; `beyond`: it had more than requested.
   */
  readonly repeats: 'full' | 'beyond' | undefined
}

const RESTARTS = 2
const FRUITLESS_PAGES = 20
const CURSOR_LOST = new Set(['expiredCursor', 'invalidCursor'])
// 501 is RFC 7644's status for an unsupported operation; some directories answer 400 instead.
const REFUSALS = new Set([400, 501])

/** Why another way is tried: a rejection, or a page that is too large. */
type Refusal = Answer | SyncFailure
type Outcome<Result> = { readonly end: Result } | { readonly refused: Refusal }

/**
 * Walks over all groups and passes each to `add`, some several times.
 * @throws {SyncFailure} if the list is unreadable or endless.
 */
export async function walkGroups(options: WalkOptions, add: (group: RemoteGroup) => void): Promise<WalkEnd> {
  let restarts = 0
  return await tryWays(options, async (way) => {
    for (;;) {
      const outcome = await walk(options, way, add)
      if (!hasLostCursor(outcome) || restarts === RESTARTS) return outcome
      restarts += 1
    }
  })
}

function hasLostCursor(outcome: Outcome<WalkEnd>): boolean {
  if (!('refused' in outcome) || outcome.refused instanceof SyncFailure) return false
  return CURSOR_LOST.has(scimTypeOf(outcome.refused.body) ?? '')
}

/** The first page of groups and its query. */
export async function firstPage(
  options: Omit<WalkOptions, 'progress'>,
): Promise<{ readonly page: Page; readonly way: Query }> {
  return await tryWays(options, async (way) => {
    const received = await requestPage(options, way)
    return 'page' in received ? { end: { page: received.page, way, repeats: undefined } } : received
  })
}

/** Tries one way after the other, until a list does not repeat its first page. */
async function tryWays<Result extends Pick<WalkEnd, 'repeats'>>(
  options: Omit<WalkOptions, 'progress'>,
  attempt: (way: Query) => Promise<Outcome<Result>>,
): Promise<Result> {
  let repeating: Result | undefined
  let refused: Refusal | undefined
  for (const way of waysToList({ ...options, pageSize: options.limits.pageSize })) {
    if (!mayHelp(way, repeating?.repeats, refused)) continue
    const outcome = await attempt(way)
    if ('refused' in outcome) refused ??= outcome.refused
    else if (outcome.end.repeats === undefined) return outcome.end
    else repeating ??= outcome.end
  }
  if (repeating !== undefined) return repeating
  throw refused instanceof SyncFailure ? refused : unexpected(refused)
}

// Repeating pages prove nothing about a single page; after a page that is too large, only smaller ones help.
function mayHelp(way: Query, repeats: WalkEnd['repeats'], refused: Refusal | undefined): boolean {
  if (repeats === 'full' || refused instanceof SyncFailure) return 'count' in way
  return repeats === undefined || 'cursor' in way
}

type Received = { readonly page: Page } | { readonly refused: Refusal }

async function requestPage(
  { client, warnings }: Pick<WalkOptions, 'client' | 'warnings'>,
  query: Query,
): Promise<Received> {
  try {
    const answer = await client.get('/Groups', query)
    if (REFUSALS.has(answer.status)) return { refused: answer }
    if (answer.status !== 200) throw unexpected(answer)
    return { page: readPage(answer.body, warnings) }
  } catch (error) {
    const isTooLarge = error instanceof SyncFailure && error.failure === 'directory_too_large'
    if (isTooLarge && 'count' in query) return { refused: error }
    throw error
  }
}

async function walk(
  options: WalkOptions,
  first: Query,
  add: (group: RemoteGroup) => void,
): Promise<Outcome<WalkEnd>> {
  const position = new Position(first)
  for (let query = first; position.pages < options.limits.pages;) {
    const received = await requestNext(options, query, position)
    if (received === 'end') return { end: position.end(query) }
    if ('refused' in received) return received
    const { page } = received
    position.take(page, add)
    options.progress(position.groups, position.total)
    const next = nextQuery(query, { nextCursor: page.nextCursor, rows: position.rows })
    const isGuess = 'cursor' in first && !options.offer.cursor
    if (isGuess && next === undefined && position.pages === 1) return { refused: NO_CURSORS }
    if (next === undefined || position.isEnd(page, query)) return { end: position.end(query, page) }
    position.refuseLoop(next)
    query = next
  }
  throw new SyncFailure('directory_too_large', `more than ${options.limits.pages} pages of groups`)
}

// A directory that ignores the parameter returns a first page like any other.
const NO_CURSORS: Answer = { status: 400, body: undefined }

/** Once the total is reached, a failing page is not a missing one. */
async function requestNext(
  options: WalkOptions,
  query: Query,
  position: Position,
): Promise<Received | 'end'> {
  if (!position.isTotalReached()) return await requestPage(options, query)
  try {
    const received = await requestPage(options, query)
    return 'refused' in received ? 'end' : received
  } catch (error) {
    if (isOfReply(error)) return 'end'
    throw error
  }
}

/** The position of a walk. */
class Position {
  pages = 0
  rows = 0
  total: number | undefined
  readonly #first: Query
  #firstRows = 0
  #unusable = 0
  #unsteady = false
  #fruitless = 0
  // Of this walk alone: in a second walk every group is known.
  readonly #seen = new Set<string>()
  readonly #cursors = new Set<string>()

  constructor(first: Query) {
    this.#first = first
  }

  get groups(): number {
    return this.#seen.size
  }

  isTotalReached(): boolean {
    return this.total !== undefined && this.rows >= this.total
  }

  take(page: Page, add: (group: RemoteGroup) => void): void {
    const known = this.#seen.size
    for (const group of page.groups) {
      add(group)
      this.#seen.add(group.scimId)
    }
    if (page.total !== undefined) {
      this.#unsteady ||= this.total !== undefined && this.total !== page.total
      this.total = page.total
    }
    this.pages += 1
    if (this.pages === 1) this.#firstRows = page.rows
    const bringsNothing = this.#seen.size === known && !this.#isUnusable(page)
    this.#fruitless = bringsNothing ? this.#fruitless + 1 : 0
    if (bringsNothing) return
    this.rows += page.rows
    this.#unusable += page.rows - page.groups.length
  }

  // Limited by the total, which counts groups only.
  #isUnusable({ groups, rows }: Page): boolean {
    return groups.length === 0 && rows > 0 && this.total !== undefined && this.rows + rows <= this.total
  }

  /**
   * Whether the list ends with this page, in paging by index. It goes on until a page has nothing new, even past the
   * total, since in some directories the total is the page size. A short page that reaches the total ends it, since
   * some directories fail on a page past the end.
   */
  isEnd(page: Page, query: Query): boolean {
    if (page.nextCursor !== undefined) return false
    const isShort = page.rows < Number(query['count'] ?? 0)
    return this.#fruitless > 0 || (isShort && this.isTotalReached())
  }

  refuseLoop({ cursor }: Query): void {
    if (cursor === undefined) return
    if (this.#cursors.has(cursor) || this.#fruitless > FRUITLESS_PAGES) {
      throw new SyncFailure('directory_incomplete', 'the cursors of the list of groups lead nowhere')
    }
    this.#cursors.add(cursor)
  }

  end(query: Query, last?: Page): WalkEnd {
    const isRepeated = this.pages === 2 && this.#fruitless === 1 && last !== undefined && last.rows > 0
    const isFull = this.#firstRows === Number(this.#first['count'])
    return {
      total: this.total,
      rows: this.rows,
      groups: this.groups,
      unusable: this.#unusable,
      unsteady: this.#unsteady,
      endStated: 'cursor' in query,
      repeats: isRepeated ? (isFull ? 'full' : 'beyond') : undefined,
    }
  }
}

function unexpected({ status, body }: Answer = NO_CURSORS): SyncFailure {
  const why = scimTypeOf(body)
  const detail = `GET /Groups: status ${status}${why === undefined ? '' : ` (${why})`}`
  return new SyncFailure('directory_invalid_response', detail)
}
