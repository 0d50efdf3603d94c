/**
 * Reads the list of groups to its end, in whatever way the directory pages: by index (RFC 7644, 3.4.2.4), by
 * cursor (RFC 9865) or not at all.
 */
import type { Answer, DirectoryClient, Query } from './client.ts'
import { SyncFailure } from '../failures.ts'
import type { SyncLimits } from './limits.ts'
import { groupCalled, readPage, scimTypeOf, type Page, type RemoteGroup } from './messages.ts'

/** Told after each page: groups read so far, and how many there are where the directory says so. */
export type Progress = (read: number, total: number | undefined) => void

export interface WalkOptions {
  readonly client: DirectoryClient
  readonly limits: SyncLimits
  /** Whether the directory offers cursors. */
  readonly cursor: boolean
  /** Whether members are wanted with the groups. */
  readonly withMembers: boolean
  readonly progress: Progress
}

/** How a walk ended. */
export interface WalkEnd {
  /** The last total the directory gave, if it gave any. */
  readonly total: number | undefined
  /** Whether two pages gave different totals: groups came or went meanwhile, and rows may have been skipped. */
  readonly unsteady: boolean
  /** Whether the directory itself said that the last page was the last: a cursor walk that ended. */
  readonly endTold: boolean
}

/** Groups by the directory's id; several walks may fill the same. */
export type Found = Map<string, RemoteGroup>

const RESTARTS = 2
const FRUITLESS_PAGES = 20
const CURSOR_LOST = new Set(['expiredCursor', 'invalidCursor'])
// 501 is what RFC 7644 gives for an operation that is not supported; 400 is what others answer to the same.
const REFUSALS = new Set([400, 501])

/**
 * Walks over all groups and adds them to `found`.
 * @throws {SyncFailure} when the list cannot be read or does not end.
 */
export async function walkGroups(options: WalkOptions, found: Found): Promise<WalkEnd> {
  let restarts = 0
  return await askInTurn(waysToAsk(options), async (way) => {
    for (;;) {
      const outcome = await walk(options, way, found)
      const hasLostCursor = 'refused' in outcome && CURSOR_LOST.has(scimTypeOf(outcome.refused.body) ?? '')
      if (!hasLostCursor || restarts === RESTARTS) return outcome
      restarts += 1
    }
  })
}

/** The first page of groups, and the query that brought it. */
export async function firstPage(options: Omit<WalkOptions, 'progress'>): Promise<[Page, Query]> {
  return await askInTurn(waysToAsk(options), async (way) => {
    const answer = await options.client.get('/Groups', way)
    if (REFUSALS.has(answer.status)) return { refused: answer }
    if (answer.status !== 200) throw unexpected(answer)
    return { brought: [readPage(answer.body), way] }
  })
}

type Outcome<Brought> = { readonly brought: Brought } | { readonly refused: Answer }

/** Asks in the first way, and, where the directory refuses it, in the next. */
async function askInTurn<Brought>(
  [way = {}, ...plainer]: readonly Query[],
  ask: (way: Query) => Promise<Outcome<Brought>>,
): Promise<Brought> {
  const outcome = await ask(way)
  if ('brought' in outcome) return outcome.brought
  if (plainer.length === 0) throw unexpected(outcome.refused)
  return await askInTurn(plainer, ask)
}

// From the best way to the plainest.
function waysToAsk({ cursor, withMembers, limits }: Omit<WalkOptions, 'progress'>): Query[] {
  const count = String(limits.pageSize)
  const without: Query = withMembers ? {} : { excludedAttributes: 'members' }
  return [
    ...(cursor ? [{ cursor: '', count, ...without }] : []),
    { startIndex: '1', count, ...without },
    ...(withMembers ? [] : [{ startIndex: '1', count }]),
    {},
  ]
}

async function walk(options: WalkOptions, first: Query, found: Found): Promise<Outcome<WalkEnd>> {
  const { client, limits } = options
  const cursors = new Set<string>()
  // Of this walk alone: on a second one, every row is known before.
  const seen = new Set<string>()
  let members = 0
  let query = first
  let rows = 0
  let fruitless = 0
  let total: number | undefined
  let unsteady = false

  for (let pages = 0; pages < limits.pages; pages += 1) {
    const answer = await client.get('/Groups', query)
    if (REFUSALS.has(answer.status)) return { refused: answer }
    const endTold = 'cursor' in query
    if (isPastEnd(answer, seen.size, total)) return { brought: { total, unsteady, endTold } }
    if (answer.status !== 200) throw unexpected(answer)
    const page = readPage(answer.body)
    const known = seen.size
    for (const group of page.groups) {
      members += checkMembers(group, limits)
      found.set(group.scimId, group)
      seen.add(group.scimId)
    }
    checkSize(found, members, limits)
    const fresh = seen.size - known
    rows += page.groups.length
    fruitless = fresh === 0 ? fruitless + 1 : 0
    if (page.total !== undefined) {
      unsteady ||= total !== undefined && total !== page.total
      total = page.total
    }
    options.progress(seen.size, total)

    const next = nextQuery({ page, query, rows, fresh })
    if (next === undefined) return { brought: { total, unsteady, endTold } }
    refuseLoop(next, cursors, fruitless)
    query = next
  }
  throw new SyncFailure('directory_too_large', `more than ${limits.pages} pages of groups`)
}

// Some directories do not know a page past the end, which is none that is missing once the total is reached.
function isPastEnd({ status }: Answer, known: number, total: number | undefined): boolean {
  return status === 404 && total !== undefined && known >= total
}

interface Position {
  readonly page: Page
  readonly query: Query
  /** Rows received on this walk, repeated ones included. */
  readonly rows: number
  /** Groups of the page that were new. */
  readonly fresh: number
}

// By index the walk goes on until a page brings nothing new, even past the total: in some directories the total
// is the size of the page, others return the first page again when asked for one past the end.
function nextQuery({ page, query, rows, fresh }: Position): Query | undefined {
  if (page.nextCursor !== undefined) {
    const { startIndex: _dropped, ...rest } = query
    return { ...rest, cursor: page.nextCursor }
  }
  if (!('startIndex' in query) || fresh === 0) return undefined
  return { ...query, startIndex: String(rows + 1) }
}

function refuseLoop({ cursor }: Query, cursors: Set<string>, fruitless: number): void {
  if (cursor === undefined) return
  if (cursors.has(cursor) || fruitless > FRUITLESS_PAGES) {
    throw new SyncFailure('directory_incomplete', 'the cursors of the list of groups lead nowhere')
  }
  cursors.add(cursor)
}

/** @throws {SyncFailure} when there are more groups, or more members in all, than a sync takes. */
export function checkSize(found: Found, members: number, limits: SyncLimits): void {
  if (found.size > limits.groups) {
    throw new SyncFailure('directory_too_large', `more than ${limits.groups} groups`)
  }
  if (members > limits.members) {
    throw new SyncFailure('directory_too_large', `more than ${limits.members} memberships`)
  }
}

/**
 * The number of members of the group.
 * @throws {SyncFailure} when it has more than a group may have.
 */
export function checkMembers({ scimId, members }: RemoteGroup, limits: SyncLimits): number {
  const count = members?.count ?? 0
  if (count <= limits.membersPerGroup) return count
  const detail = `${groupCalled(scimId)} has more than ${limits.membersPerGroup} members`
  throw new SyncFailure('directory_too_large', detail)
}

function unexpected({ status, body }: Answer): SyncFailure {
  const why = scimTypeOf(body)
  const detail = `GET /Groups: status ${status}${why === undefined ? '' : ` (${why})`}`
  return new SyncFailure('directory_invalid_response', detail)
}
