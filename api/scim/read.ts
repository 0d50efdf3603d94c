/** Reads all groups of a directory with their members, and decides what the absence of a group proves. */
import { shorten } from '../untrusted/shorten.ts'
import { createClient, type ClientDependencies, type DirectoryClient, type SyncLimits } from './client.ts'
import type { Connection } from './connections.ts'
import { isOfReply, SyncFailure } from './failures.ts'
import {
  readGroup,
  readListOffer,
  type ListOffer,
  type Member,
  type Page,
  type ReceivedGroup,
} from './messages.ts'
import { hasNoMembers, type RemoteGroup } from './plan.ts'
import { ON_REQUEST, requestPage, walkGroups, type Progress, type Walk } from './walk.ts'

/** What a sync interprets, leaves out or keeps: the first two of the whole directory, the others of some groups. */
const WARNINGS = {
  capped:
    'The directory ignores count, so its list may be capped: a group that is not listed is only deleted if a request ' +
    'for it is answered with 404 or 410',
  no_members:
    'The directory returned no members for any group: a group that had members counts as empty, for the others they ' +
    'stay unknown',
  group_without_id: 'without a usable id: left out, so nothing counts as deleted',
  member_without_id: 'with members that have no usable id: these are left out',
  members_unreadable: 'with members that could not be read: these stay as they are stored',
  not_listed: 'readable by id, but in no list of groups: deleted here',
  kept: 'not in the list, but not provably deleted: these stay',
} as const

export interface ReadOptions {
  readonly client: DirectoryClient
  readonly limits: SyncLimits
  readonly members: Connection['members']
  readonly progress: Progress
  /** Whether a sync goes on if the members of `groups` of all groups are unreadable. */
  readonly mayMiss: (groups: number, all: number) => boolean
  /** Compares and stages the members of a group. */
  readonly takeMembers: (group: ReceivedGroup, members: readonly Member[]) => Promise<RemoteGroup['members']>
  /** Called after each page. */
  readonly onPage: () => Promise<void>
}

/** What the directory offers for lists; without an answer it is requested by index. */
async function discoverLists(client: DirectoryClient): Promise<ListOffer> {
  const answer = await client.getOptional('/ServiceProviderConfig')
  return readListOffer(answer?.status === 200 ? answer.body : undefined)
}

/** A directory's groups, as a sync reads them. */
export class Directory {
  readonly groups = new Map<string, RemoteGroup>()
  readonly #options: ReadOptions
  readonly #offer: ListOffer
  readonly #warned = new Map<keyof typeof WARNINGS, Set<string>>()
  /** Groups whose members have been requested by their id. */
  readonly #read = new Set<string>()
  readonly #unreadable = new Map<string, SyncFailure>()
  #memberships = 0
  #isProven = false
  #isCapped = false

  private constructor(options: ReadOptions, offer: ListOffer) {
    this.#options = options
    this.#offer = offer
  }

  /**
   * Reads all groups.
   * @throws {SyncFailure} if they are unreadable or provably incomplete.
   */
  static async read(options: ReadOptions): Promise<Directory> {
    const directory = new Directory(options, await discoverLists(options.client))
    const walk = await directory.#readAll()
    directory.#isProven = isProof(walk)
    directory.#isCapped = !(await directory.#honoursCount(walk))
    if (directory.#isCapped) directory.#warn('capped')
    const groups = [...directory.groups.values()]
    const mayHaveMembers = options.members !== 'off' && groups.length > 0
    if (mayHaveMembers && groups.every(hasNoMembers)) directory.#warn('no_members')
    return directory
  }

  /** A sentence per kind of warning; those about groups have their number and the first of them. */
  warnings(): string[] {
    return [...this.#warned].map(([warning, groups]) => {
      const [first] = groups
      if (first === undefined) return WARNINGS[warning]
      const all = groups.size === 1 ? '1 group' : `${groups.size} groups`
      return `${all} ${WARNINGS[warning]} (the first: "${shorten(first)}")`
    })
  }

  /**
   * Checks groups that are not listed. Resolves to the ids of those that stay, since nothing proves their deletion. May
   * find further groups.
   */
  async confirmAbsent(scimIds: readonly string[]): Promise<ReadonlySet<string>> {
    const staying = await this.#findStaying(scimIds)
    if (staying.size > 0) this.#warn('kept', staying)
    return staying
  }

  #warn(warning: keyof typeof WARNINGS, groups: Iterable<string> = []): void {
    const known = this.#warned.get(warning) ?? new Set()
    for (const group of groups) known.add(group)
    this.#warned.set(warning, known)
  }

  async #readAll(): Promise<Walk> {
    const walk = await this.#readList()
    if (this.#options.members === 'per_group') await this.#readMembers()
    return walk
  }

  /** Reads the list, twice if the first reading is doubtful, since pages without a stable order miss groups. */
  async #readList(): Promise<Walk> {
    const seen = new Set<string>()
    const options = { ...this.#options, offer: this.#offer, withMembers: this.#options.members === 'inline' }
    const take = async ({ groups, unusable }: Page) => {
      if (unusable.length > 0) this.#warn('group_without_id', unusable)
      for (const group of groups) {
        seen.add(group.scimId)
        await this.#add(group)
      }
      await this.#options.onPage()
    }
    let walk = await walkGroups(options, take)
    if (isDoubtful(walk)) {
      const before = seen.size
      walk = await walkGroups(options, take, this.#offer.sort ? { sortBy: 'id' } : {})
      refuseIncomplete(walk, seen.size, before)
    }
    if (walk.repeats === 'full') {
      throw incomplete(`${walk.groups} groups, and the same ones on the next page with any paging`)
    }
    if (walk.groups === 0 && walk.unusable > 0) {
      throw new SyncFailure('directory_invalid_response', 'a list of groups has no group with a usable id')
    }
    return walk
  }

  /** The first row of a group counts. */
  async #add(group: ReceivedGroup): Promise<void> {
    if (this.groups.has(group.scimId)) return
    if (this.groups.size >= this.#options.limits.groups) throw tooLarge('groups')
    this.groups.set(group.scimId, { ...group, members: 'unknown' })
    if (this.#options.members === 'inline') await this.#addMembers(group)
  }

  async #addMembers(received: ReceivedGroup): Promise<void> {
    const { scimId, members, lacksMembers } = received
    const group = this.groups.get(scimId)
    if (lacksMembers) this.#warn('member_without_id', [scimId])
    else if (members === null) this.#warn('members_unreadable', [scimId])
    if (members === null || group === undefined) return
    this.#memberships += members.length
    if (this.#memberships > this.#options.limits.members) throw tooLarge('memberships')
    this.groups.set(scimId, { ...group, members: await this.#options.takeMembers(received, members) })
  }

  /**
   * Reads members by a request per group. Groups with unreadable members keep the stored ones.
   * @throws {SyncFailure} if too many are unreadable.
   */
  async #readMembers(): Promise<void> {
    const { client, limits, mayMiss, progress, onPage } = this.#options
    const left = [...this.groups.keys()].filter((scimId) => !this.#read.has(scimId))
    await inParallel(left, limits.parallel, async (scimId) => {
      const found = await readById(client, scimId)
      if (found instanceof SyncFailure) this.#unreadable.set(scimId, found)
      else await this.#addMembers(found)
      this.#read.add(scimId)
      const [first] = this.#unreadable.values()
      const [missing, all] = [this.#unreadable.size, this.groups.size]
      if (first !== undefined && (missing === all || !mayMiss(missing, all))) throw first
      progress(this.#read.size, all)
    })
    await onPage()
    if (this.#unreadable.size > 0) this.#warn('members_unreadable', this.#unreadable.keys())
  }

  /** Whether the directory obeys `count`: otherwise its only page may be capped, whatever total it states. */
  async #honoursCount({ way, pages, rows, isEndStated }: Walk): Promise<boolean> {
    if (isEndStated || pages > 1 || rows <= 1) return true
    if (!('count' in way)) return false
    const probe = await requestPage(this.#options, { ...way, count: '1' }, 1)
    return 'page' in probe && probe.page.rows <= 1
  }

  async #findStaying(scimIds: readonly string[]): Promise<ReadonlySet<string>> {
    if (scimIds.length === 0 || !this.#isProven) return new Set(scimIds)
    if (this.#isCapped) return await this.#findUnproven(scimIds)
    const found = scimIds.length > this.#options.limits.lookUps ? [] : await this.#lookUp(scimIds)
    if (found.length > 0 && found.every(([, state]) => state === 'gone')) return new Set()
    if (!isProof(await this.#readAll())) return new Set(scimIds)
    // A group in neither reading is not shared with this service: directories revoke access in this way.
    for (const [scimId, state] of found) {
      if (state === 'found' && !this.groups.has(scimId)) this.#warn('not_listed', [scimId])
    }
    return new Set()
  }

  /** Only a 404 or 410 proves anything, and only if the directory answers for single groups at all. */
  async #findUnproven(scimIds: readonly string[]): Promise<ReadonlySet<string>> {
    const listed = await this.#lookUp([...this.groups.keys()].slice(0, 1))
    if (listed[0]?.[1] !== 'found') return new Set(scimIds)
    const found = await this.#lookUp(scimIds)
    return new Set(found.filter(([, state]) => state !== 'gone').map(([scimId]) => scimId))
  }

  async #lookUp(scimIds: readonly string[]) {
    const found: (readonly [string, 'found' | 'gone' | 'unknown'])[] = []
    const { client, limits } = this.#options
    await inParallel(scimIds, limits.parallel, async (scimId) => {
      // A directory may serve lists alone and answer any other path arbitrarily: that is unknown.
      const answer = await client.getOptional(pathOf(scimId))
      const isFound = answer?.status === 200 && readGroup(answer.body)?.scimId === scimId
      const isGone = answer?.status === 404 || answer?.status === 410
      found.push([scimId, isFound ? 'found' : isGone ? 'gone' : 'unknown'])
    })
    return found
  }
}

/** Whether a list proves that a group is absent. */
function isProof({ total, isEndStated, unusable }: Walk): boolean {
  return (total !== undefined || isEndStated) && unusable === 0
}

// Fewer groups than the total, or a total that changed during the walk: index paging skips rows when others are
// deleted.
function isDoubtful({ total, groups, unusable, isUnsteady }: Walk): boolean {
  return isUnsteady || (total !== undefined && groups + unusable < total)
}

// Repeated rows are not missing groups, if two walks return all rows and the same groups.
function refuseIncomplete({ total, rows, unusable }: Walk, seen: number, before: number): void {
  const isRepeating = seen === before && total !== undefined && rows >= total
  if (total === undefined || seen + unusable >= total || isRepeating) return
  throw incomplete(`${seen} different groups in two walks, but the directory counts ${total}`)
}

function incomplete(detail: string): SyncFailure {
  return new SyncFailure('directory_incomplete', detail)
}

function tooLarge(what: 'groups' | 'memberships'): SyncFailure {
  return new SyncFailure('directory_too_large', `more ${what} than a sync may have`)
}

function pathOf(scimId: string): string {
  return `/Groups/${encodeURIComponent(scimId)}`
}

/**
 * The group with this id and its members, requested by name since some directories send them on request only, or the
 * failure to read it: any status, another group, or something that is none.
 * @throws {SyncFailure} if the whole sync cannot go on.
 */
async function readById(client: DirectoryClient, scimId: string): Promise<ReceivedGroup | SyncFailure> {
  try {
    let { status, body } = await client.get(pathOf(scimId), ON_REQUEST)
    if (status === 400 || status === 501) ({ status, body } = await client.get(pathOf(scimId)))
    const group = status === 200 ? readGroup(body) : undefined
    if (group?.scimId === scimId) return group
    const what = status === 200 ? 'something that is not this group' : `status ${status}`
    const detail = `the group "${shorten(scimId)}": the request by its id is answered with ${what}`
    return new SyncFailure('directory_invalid_response', detail)
  } catch (error) {
    // A group that is too large ends the sync: otherwise its stored members would never change again.
    if (isOfReply(error) && error.failure !== 'directory_too_large') return error
    throw error
  }
}

/** Does the work for each item, `width` at a time. */
async function inParallel<Item>(
  items: readonly Item[],
  width: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items.values()
  const worker = async () => {
    for (const item of queue) await work(item)
  }
  await Promise.all(Array.from({ length: width }, worker))
}

/**
 * Requests the first page of groups as a sync would, and describes it, as lines of `name: value`.
 * @throws {SyncFailure} if the directory returns no list of groups.
 */
export async function examine(
  connection: Connection,
  signal: AbortSignal,
  dependencies: ClientDependencies,
): Promise<string[]> {
  const client = createClient(connection, signal, dependencies)
  const { limits } = dependencies
  const { members } = connection
  let first: Page | undefined
  try {
    const offer = await discoverLists(client)
    const options = { client, limits, offer, withMembers: members === 'inline', progress: () => undefined }
    const { way } = await walkGroups(options, async (page) => ((first = page), false))
    const isByCursor = 'cursor' in way || first?.nextCursor !== undefined
    const unstated = isByCursor ? 'not stated' : 'not stated, so a sync deletes nothing'
    const byIndex = 'startIndex' in way ? 'index' : 'nothing, all groups come at once'
    return [
      `address: ${connection.url}`,
      `pages by: ${isByCursor ? 'cursor' : byIndex}`,
      `groups in all: ${first?.total ?? unstated}`,
      `groups on the first page: ${first?.groups.length ?? 0}`,
      ...(await describeMembers(client, members, first?.groups ?? [])),
    ]
  } finally {
    await client.close()
  }
}

async function describeMembers(
  client: DirectoryClient,
  mode: Connection['members'],
  groups: readonly ReceivedGroup[],
): Promise<string[]> {
  const [first] = groups
  if (mode === 'inline') {
    return [`of these with members: ${groups.filter(({ members }) => members?.length !== 0).length}`]
  }
  if (mode === 'off' || first === undefined) return []
  const group = await readById(client, first.scimId)
  const known = group instanceof SyncFailure ? 'it cannot be read' : (group.members?.length ?? 'unreadable')
  return [`members of the first, requested by its id: ${known}`]
}
