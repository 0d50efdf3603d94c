/**
 * Reads the list of groups to its end, with the directory's paging: by index (RFC 7644, 3.4.2.4), by cursor (RFC 9865)
 * or none.
 */
import type { Answer, DirectoryClient, Query } from './client.ts'
import { isOfReply, SyncFailure, type Failure } from './failures.ts'
import type { SyncLimits } from './limits.ts'
import { readPage, scimTypeOf, type ListOffer, type Page, type ReceivedGroup } from './messages.ts'
import type { Warnings } from './warnings.ts'
import { Position, type WalkEnd } from './walk-position.ts'

/** Called after each page with the groups read so far, and the directory's total if it states one. */
export type Progress = (read: number, total: number | undefined) => void

export interface WalkOptions {
  readonly client: DirectoryClient
  readonly limits: SyncLimits
  readonly offer: ListOffer
  /** Whether to request members with the groups. */
  readonly withMembers: boolean
  readonly progress: Progress
  readonly warnings: Warnings
  /** What the walks of one sync found out: whether members come only if they are requested by name. */
  readonly memory: { membersOnRequest: boolean | undefined }
}

/** A walk over the whole list: its end and the query of its first page. */
export type Walk = WalkEnd & { readonly way: Query }

/** Receives the groups of a page; `false` ends the walk. */
export type TakePage = (groups: readonly ReceivedGroup[], page: Page) => Promise<boolean | void>

const RESTARTS = 2
const CURSOR_LOST = new Set(['expiredCursor', 'invalidCursor'])
// 501 is RFC 7644's status for an unsupported operation; some directories answer 400 instead.
const REFUSALS = new Set([400, 501])
/** For directories that return members on request only (RFC 7643, 7: `returned`), as Keycloak does. */
export const ON_REQUEST = { attributes: 'externalId,displayName,members' }

/** Why another way is tried: a rejection, a failing server, or a page that is too large. */
type Refusal = Answer | SyncFailure
type Outcome = { readonly end: Walk } | { readonly refused: Refusal }

/**
 * Walks over all groups and passes each page to `take`, some groups several times. `more` is added to each query.
 * @throws {SyncFailure} if the list is unreadable or endless.
 */
export async function walkGroups(options: WalkOptions, take: TakePage, more: Query = {}): Promise<Walk> {
  let repeating: Walk | undefined
  let refused: Refusal | undefined
  for (const way of waysToList(options, more)) {
    if (!mayHelp(way, repeating?.repeats, refused)) continue
    // Once a way has failed in spite of retries, every other one is tried once.
    const patience = refused instanceof SyncFailure ? { tries: 1 } : {}
    const outcome = await walkWithRestarts(options, way, take, patience)
    if ('refused' in outcome) refused ??= outcome.refused
    else if (outcome.end.repeats === undefined) return outcome.end
    else repeating ??= outcome.end
  }
  if (repeating !== undefined) return repeating
  throw refused instanceof SyncFailure ? refused : unexpected(refused)
}

/** The queries of a first page, the best first. */
function waysToList({ offer, limits, withMembers }: WalkOptions, more: Query): Query[] {
  const most = Math.min(limits.pageSizes[0] ?? 1, offer.maxPage ?? Infinity)
  const sizes = [most, ...limits.pageSizes.filter((size) => size < most)].map(String)
  const cursor = [...sizes.map((count) => ({ cursor: '', count })), { cursor: '' }]
  const index = [...sizes.map((count) => ({ startIndex: '1', count })), { startIndex: '1' }]
  // Some directories have cursors without announcing them: they are tried when index requests fail.
  const ways: Query[] = offer.cursor ? [...cursor, ...index, {}] : [...index, ...cursor.slice(0, 1), {}]
  const all = ways.map((way) => ({ ...way, ...more }))
  return withMembers ? all : all.flatMap((way) => [{ ...way, excludedAttributes: 'members' }, way])
}

// Repeating pages prove nothing about a single page; after a page that is too large, only smaller ones help.
function mayHelp(way: Query, repeats: WalkEnd['repeats'], refused: Refusal | undefined): boolean {
  const isTooLarge = refused instanceof SyncFailure && refused.failure === 'directory_too_large'
  if (repeats === 'full' || isTooLarge) return 'count' in way
  return repeats === undefined || 'cursor' in way
}

interface Trial {
  readonly tries?: number
}

async function walkWithRestarts(
  options: WalkOptions,
  way: Query,
  take: TakePage,
  patience: Trial,
): Promise<Outcome> {
  for (let restarts = 0; ; restarts += 1) {
    const outcome = await walk(options, way, take, patience)
    if (!hasLostCursor(outcome) || restarts === RESTARTS) return outcome
  }
}

function hasLostCursor(outcome: Outcome): boolean {
  if (!('refused' in outcome) || outcome.refused instanceof SyncFailure) return false
  return CURSOR_LOST.has(scimTypeOf(outcome.refused.body) ?? '')
}

async function walk(options: WalkOptions, first: Query, take: TakePage, patience: Trial): Promise<Outcome> {
  const position = new Position(first)
  const end = (query: Query, page?: Page): Outcome => ({ end: { ...position.end(query, page), way: first } })
  for (let query = first; position.pages < options.limits.pages;) {
    const received = await requestNext(options, query, position, patience)
    if (received === 'end') return end(query)
    if ('refused' in received) return received
    const { page } = received
    position.take(page)
    const goesOn = await take(page.groups, page)
    options.progress(position.groups, position.total)
    const next = nextQuery(query, page, position)
    const isGuess = 'cursor' in first && !options.offer.cursor
    if (isGuess && next === undefined && position.pages === 1) return { refused: NO_CURSORS }
    if (next === undefined || goesOn === false || position.isEnd(page)) return end(query, page)
    position.refuseLoop(next['cursor'])
    query = next
  }
  throw new SyncFailure('directory_too_large', `more than ${options.limits.pages} pages of groups`)
}

// A directory that ignores the parameter returns a first page like any other.
const NO_CURSORS: Answer = { status: 400, body: undefined }

type Received = { readonly page: Page } | { readonly refused: Refusal }

async function requestNext(
  options: WalkOptions,
  query: Query,
  position: Position,
  patience: Trial,
): Promise<Received | 'end'> {
  try {
    const received = await requestWithMembers(options, query, patience)
    if (!('refused' in received)) return received
    if (position.isTotalReached()) return 'end'
    // In the middle, a way that works is not given up for a server that fails.
    if (position.pages > 0 && isFault(received.refused)) throw received.refused
    return received
  } catch (error) {
    // Once the total is reached, a failing page is not a missing one.
    if (position.isTotalReached() && isOfReply(error)) return 'end'
    throw error
  }
}

/** If the first page has no members, they are requested by name once; the walk keeps the way that returns some. */
async function requestWithMembers(options: WalkOptions, query: Query, patience: Trial): Promise<Received> {
  const { withMembers, memory } = options
  const received = await requestPage(
    options,
    memory.membersOnRequest === true ? { ...query, ...ON_REQUEST } : query,
    patience,
  )
  if ('refused' in received || !withMembers || memory.membersOnRequest !== undefined) return received
  if (received.page.groups.length === 0) return received
  memory.membersOnRequest = false
  if (hasMembers(received.page)) return received
  const byName = await requestPage(options, { ...query, ...ON_REQUEST }, { tries: 1 }).catch(onlyOfReply)
  if (byName === undefined || 'refused' in byName || !hasMembers(byName.page)) return received
  memory.membersOnRequest = true
  return byName
}

function hasMembers({ groups }: Page): boolean {
  return groups.some(({ members }) => members !== 'none')
}

function onlyOfReply(error: unknown): undefined {
  if (!isOfReply(error)) throw error
}

function isFault(refused: Refusal): refused is SyncFailure {
  return refused instanceof SyncFailure && MOVES_ON.has(refused.failure)
}

/** Failures of a first page after which another way to list may work: proxies give up on large pages, some servers on any count. */
const MOVES_ON: ReadonlySet<Failure> = new Set(['directory_failing', 'directory_unreachable'])

/**
 * Requests one page of groups.
 * @throws {SyncFailure} if no other way to list can help.
 */
export async function requestPage(
  { client, warnings }: Pick<WalkOptions, 'client' | 'warnings'>,
  query: Query,
  patience: Trial = {},
): Promise<Received> {
  try {
    const answer = await client.get('/Groups', query, patience)
    if (REFUSALS.has(answer.status)) return { refused: answer }
    if (answer.status !== 200) throw unexpected(answer)
    return { page: readPage(answer.body, warnings) }
  } catch (error) {
    if (!(error instanceof SyncFailure)) throw error
    const isTooLarge = error.failure === 'directory_too_large' && 'count' in query
    if (isTooLarge || isFault(error)) return { refused: error }
    throw error
  }
}

/** The query of the next page; undefined after the last one. */
function nextQuery(query: Query, { nextCursor }: Page, { rows }: Position): Query | undefined {
  if (nextCursor !== undefined) {
    const { startIndex: _dropped, ...rest } = query
    return { ...rest, cursor: nextCursor }
  }
  return 'startIndex' in query ? { ...query, startIndex: String(rows + 1) } : undefined
}

function unexpected({ status, body }: Answer = NO_CURSORS): SyncFailure {
  const why = scimTypeOf(body)
  const detail = `GET /Groups: status ${status}${why === undefined ? '' : ` (${why})`}`
  return new SyncFailure('directory_invalid_response', detail)
}
