/**
 * Walks over the list of groups to its end, by one way of paging after the other: by cursor (RFC 9865), by index (RFC 7644,
 * 3.4.2.4), in smaller pages, or without any.
 */
import { BRIEF, type DirectoryClient, type Patience, type Query } from './client.ts'
import { orFailure, SyncFailure, type Failure } from './failures.ts'
import { readPage, type Page } from './messages.ts'

export type ListOptions = {
  readonly client: DirectoryClient
  /** Whether the directory announces cursors. */
  readonly hasCursors: boolean
  /** Whether to request members with the groups. */
  readonly withMembers: boolean
  /** Receives each page, some groups several times. */
  readonly take: (page: Page) => Promise<void>
}

/** For directories that return members on request only (RFC 7643, 7: `returned`), as Keycloak does. */
export const ON_REQUEST = { attributes: 'externalId,displayName,members' }
const WITHOUT_MEMBERS = { excludedAttributes: 'members' }

/** Default limits of lists: of AWS and Jackson, WSO2, OpenLDAP, Active Directory. */
const USUAL_LIMITS: readonly number[] = [50, 100, 500, 1000]

type Failures = readonly (Failure | undefined)[]
/** Failures after which another way to list may work: servers reject or ignore parameters, and break off large pages. */
const MOVES_ON: Failures = ['directory_invalid_response', 'directory_too_large', 'directory_incomplete']
/** At the first page also these: in the middle, a way that works is not given up for a server that fails. */
const STARTS_ANEW: Failures = ['directory_failing', 'directory_unreachable']

/**
 * Reads the list, twice if the first reading is doubtful, since pages without a stable order miss groups.
 * @throws SyncFailure if the list is unreadable, endless or provably incomplete.
 */
export async function readList(options: ListOptions): Promise<Walk> {
  const { byCursor, others } = waysToList(options)
  // Unannounced cursors last: a directory that ignores them gives one page that looks complete.
  const ways = options.hasCursors ? [...byCursor, ...others] : [...others, ...byCursor]
  const first = await walkBy(ways, options)
  let last = first.isDoubtful ? await walkBy([{ ...first.way, sortBy: 'id' }, ...ways], options) : first
  last.isCapped = await mayBeCapped(last, options.client)
  if (last.isCapped || last.isDoubtful) {
    // AWS has cursors without announcing them.
    const walk = await orFailure(walkBy(byCursor, options))
    if (!(walk instanceof SyncFailure) && walk.pages > 1 && walk.groups.size > last.groups.size) last = walk
  }
  last.isCut ||= !first.groups.isSubsetOf(last.groups)
  refuseIncomplete(first, last)
  return last
}

/** The queries of a first page, the best first: by cursor, and otherwise. */
function waysToList({ client, withMembers }: ListOptions) {
  const [usual, other] = withMembers ? [{}, WITHOUT_MEMBERS] : [WITHOUT_MEMBERS, {}]
  const paged = (start: Query, form: Query = usual) =>
    client.limits.pageSizes.map((size): Query => ({ ...start, ...form, count: String(size) }))
  const index = { startIndex: '1' }
  // Last the other form: some refuse pages of groups with too many members, some may refuse to exclude them.
  const others = [...paged(index), { ...index, ...usual }, usual, ...paged(index, other).slice(0, 1)]
  return { byCursor: paged({ cursor: '' }), others }
}

/** Walks over all groups by the first way that works. */
async function walkBy(ways: readonly Query[], options: ListOptions): Promise<Walk> {
  let failed: SyncFailure | undefined
  for (const way of ways) {
    // Once a way has failed in spite of retries, every other one is tried once.
    const patience = STARTS_ANEW.includes(failed?.failure) ? BRIEF : options.client.limits
    const walk = await follow(way, options, patience)
    if (walk instanceof Walk) return walk
    if (failed === undefined || walk.failure === 'directory_incomplete') failed = walk
  }
  throw failed ?? new SyncFailure('internal', 'no way to list groups')
}

/** Follows a list to its end. Resolves to a failure after which another way may work. */
async function follow(way: Query, options: ListOptions, patience: Patience): Promise<Walk | SyncFailure> {
  const { client, take } = options
  const walk = new Walk(way)
  for (let asked = 0; asked < client.limits.pages; asked += 1) {
    const isFirst = asked === 0
    const page = await orFailure(
      isFirst ? requestFirst(walk, options, patience) : requestPage(client, walk.query, patience),
    )
    if (page instanceof SyncFailure) {
      // Once the total is reached, this may be the end, unless the total is that of the pages before.
      walk.isCut = walk.rows >= (walk.total ?? Infinity) && page.failure !== 'directory_too_large'
      if (walk.isCut) return walk
      if (MOVES_ON.includes(page.failure) || (isFirst && STARTS_ANEW.includes(page.failure))) return page
      throw page
    }
    const isLast = walk.add(page)
    await take(page)
    if (isLast) return walk.isIgnored ? incomplete(walk.rows, walk.total) : walk
  }
  throw new SyncFailure('directory_too_large', `more than ${client.limits.pages} pages of groups`)
}

/** Requests the first page and, if it has no members, requests them by name, as the walk then goes on to do. */
async function requestFirst(walk: Walk, options: ListOptions, patience: Patience): Promise<Page> {
  const { client, withMembers } = options
  const page = await requestPage(client, walk.query, patience)
  const isAsked = withMembers && !('excludedAttributes' in walk.query)
  const hasMembers = page.groups.some(({ members }) => members?.length !== 0)
  if (!isAsked || page.rows === 0 || hasMembers) return page
  const query = { ...walk.query, ...ON_REQUEST }
  const named = await orFailure(requestPage(client, query, BRIEF))
  // Some leave names out then too.
  if (named instanceof SyncFailure || namesOf(named) !== namesOf(page)) return page
  walk.query = query
  return named
}

/** The groups of a page without their members, in any order. */
function namesOf({ groups }: Page): string {
  const names = groups.map((group) => JSON.stringify([group.scim_id, group.external_id, group.display_name]))
  return names.toSorted().join()
}

/** Requests one page of groups. */
async function requestPage(client: DirectoryClient, query: Query, patience: Patience): Promise<Page> {
  const { status, body } = await client.get('/Groups', query, patience)
  if (status === 200) return readPage(body)
  throw new SyncFailure('directory_invalid_response', `GET /Groups: status ${status}`)
}

/**
 * Whether the list has only one page though the directory may have more groups, whatever total it states: if a page of
 * one group at its end is not just that. Some page correctly unless all groups fit (scimmy), so that pages after the end
 * tell nothing.
 */
async function mayBeCapped(walk: Walk, client: DirectoryClient): Promise<boolean> {
  const { query, pages, rows, groups, isByCursor } = walk
  if (isByCursor || pages > 1 || rows <= 1) return false
  if (query['count'] === undefined) return true
  const lastRow = { ...query, startIndex: String(rows), count: '1' }
  const page = await orFailure(requestPage(client, lastRow, client.limits))
  const [first] = groups
  return page instanceof SyncFailure || page.rows !== 1 || page.groups[0]?.scim_id === first
}

function refuseIncomplete(first: Walk, last: Walk): void {
  const { rows, groups, unusable } = last
  // A sorted list may be a part.
  const total = Math.max(first.total ?? 0, last.total ?? 0)
  if (last.isCapped && rows === Number(last.query['count']))
    throw incomplete(rows, 'more: any page is the same')
  const all = first.groups.union(groups)
  // Repeated rows are not missing groups, if two walks return all rows and the same groups.
  const isRepeating = all.size === first.groups.size && rows >= total
  if (all.size + unusable < total && !isRepeating) throw incomplete(all.size, total)
  if (groups.size === 0 && unusable > 0)
    throw new SyncFailure('directory_invalid_response', 'a list of groups has no group with a usable id')
}

function incomplete(found: number, all: number | string = '?'): SyncFailure {
  return new SyncFailure('directory_incomplete', `${found} groups were read, but the directory has ${all}`)
}

/** A walk over the list: its position, and what it has received. */
export class Walk {
  /** The queries of the first and of the next page. */
  readonly way: Query
  query: Query
  /** The directory's last total, if any. */
  total: number | undefined
  /** The pages with new groups, their rows, and the rows without a usable id. */
  pages = 0
  rows = 0
  unusable = 0
  /** The ids of the different groups: of this walk alone, since in a second walk every group is known. */
  readonly groups = new Set<string>()
  /** Whether its only page may be capped, since the directory ignores paging. */
  isCapped = false
  /** Whether it ended with a page that failed after the total was reached, or lacks groups of the walk before. */
  isCut = false
  /** Whether two pages had different totals: groups changed meanwhile, and rows may have been skipped. */
  #isUnsteady = false
  /** The cursor of the last page with new groups: if it comes again, cursors lead in a circle. */
  #cursorAfterNew: string | undefined

  constructor(way: Query) {
    this.way = way
    this.query = way
  }

  /** Whether the directory marks the last page. */
  get isByCursor(): boolean {
    return 'cursor' in this.query
  }

  /**
   * Whether the list alone proves that a group is absent: it has exactly as many different groups as it counts, or by
   * cursor as rows, and they are not a usual limit of lists. Otherwise only the group's own answer proves it.
   */
  get isProof(): boolean {
    const { size } = this.groups
    const isComplete = this.total === undefined ? this.isByCursor && size === this.rows : size === this.total
    const isLimited = this.isCapped || this.isCut || USUAL_LIMITS.includes(size)
    return isComplete && this.unusable === 0 && !isLimited
  }

  /** Whether its only page lacks rows of the total, since the directory ignores cursors, or gives none for such a count. */
  get isIgnored(): boolean {
    return this.pages === 1 && this.rows < (this.total ?? 0) && (this.isByCursor || this.rows === 0)
  }

  /** Whether groups may be missing: fewer than the total or the rows, or paging that skips rows as others are deleted. */
  get isDoubtful(): boolean {
    return this.#isUnsteady || this.groups.size + this.unusable < (this.total ?? this.rows)
  }

  /** Takes a page, and goes on to the next one; true if there is none. */
  add({ groups, rows, unusable, total = this.total, nextCursor }: Page): boolean {
    const known = this.groups.size
    for (const { scim_id } of groups) this.groups.add(scim_id)
    const hasNew = this.groups.size > known
    // By index, the page after the last one may be any.
    if (hasNew || this.pages === 0 || (this.isByCursor && rows > 0)) {
      this.#isUnsteady ||= this.total !== undefined && this.total !== total
      this.total = total
      this.pages += 1
      this.rows += rows
      this.unusable += unusable.length
    }
    return this.#advance(hasNew, nextCursor)
  }

  /** Goes on to the next page, by index after the rows received, whatever the directory calls them; true without one. */
  #advance(hasNew: boolean, cursor: string | undefined): boolean {
    const { startIndex, ...rest } = this.query
    if (hasNew || this.#cursorAfterNew === undefined) this.#cursorAfterNew = cursor
    else if (cursor === this.#cursorAfterNew) throw incomplete(this.rows, 'cursors in a circle')
    // Even past the total, which some directories take from the page.
    const isMore = startIndex !== undefined && hasNew
    if (cursor !== undefined) this.query = { ...rest, cursor }
    else if (isMore) this.query = { ...rest, startIndex: String(this.rows + 1) }
    return cursor === undefined && !isMore
  }
}
