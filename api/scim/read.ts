/** Reads all groups of a directory with their members, and decides what the absence of a group proves. */
import { shorten } from '../untrusted/shorten.ts'
import { BRIEF, type DirectoryClient, type SyncLimits } from './client.ts'
import type { Connection } from './connections.ts'
import { orFailure, SyncFailure } from './failures.ts'
import type { MemberStage } from './groups.ts'
import { readGroup, readListOffer, type ListOffer, type Page, type ReceivedGroup } from './messages.ts'
import { exceedsGate, type RemoteGroup, type StoredGroup } from './plan.ts'
import { ON_REQUEST, requestPage, walkGroups, type Walk } from './walk.ts'

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
  kept: 'not in the list, but not provably deleted: these stay',
} as const

export interface ReadOptions {
  readonly client: DirectoryClient
  readonly limits: SyncLimits
  readonly connection: Connection
  /** Whether to read the first page of the list alone. */
  readonly isTrial?: boolean
  /** Takes the members of each group, beside the stored group that is the same, if any. */
  readonly stage: MemberStage
  readonly findFormer: (group: ReceivedGroup) => StoredGroup | undefined
  /** Called after each page, with the number of groups read, and the directory's total if it states one. */
  readonly progress: (read: number, total: number | undefined) => void
}

/** Absent groups of a complete list that are requested one by one; above it, a second reading confirms them. */
const LOOK_UPS = 100
/** Concurrent requests for single groups. */
const PARALLEL = 4

/** A directory's groups, as a sync reads them. */
export class Directory {
  readonly groups = new Map<string, RemoteGroup>()
  readonly #options: ReadOptions
  readonly #warned = new Map<keyof typeof WARNINGS, Set<string>>()
  /** Groups whose members have been requested by their id, and the failures of some. */
  readonly #requested = new Set<string>()
  readonly #unreadable = new Map<string, SyncFailure>()
  #offer: ListOffer = readListOffer(undefined)
  #memberships = 0
  #isCapped = false
  #isProven = false

  constructor(options: ReadOptions) {
    this.#options = options
  }

  /**
   * Reads all groups; resolves to the walk over their list.
   * @throws {SyncFailure} if they are unreadable or provably incomplete.
   */
  async read(): Promise<Walk> {
    const { client, connection } = this.#options
    const offer = await orFailure(client.get('/ServiceProviderConfig', {}, BRIEF))
    this.#offer = readListOffer(offer instanceof SyncFailure ? undefined : offer.body)
    const walk = await this.#readAll()
    this.#isProven = isProof(walk)
    this.#isCapped = !(await this.#honoursCount(walk))
    if (this.#isCapped) this.#warn('capped')
    const groups = [...this.groups.values()]
    const mayHaveMembers = connection.members !== 'off' && groups.length > 0
    if (mayHaveMembers && groups.every(({ members }) => members?.count === 0)) this.#warn('no_members')
    return walk
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
    const staying = new Set(await this.#findStaying(scimIds))
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
    if (this.#options.connection.members === 'per_group') await this.#readMembers()
    return walk
  }

  /** Reads the list, twice if the first reading is doubtful, since pages without a stable order miss groups. */
  async #readList(): Promise<Walk> {
    const { connection, isTrial = false, limits, stage, progress } = this.#options
    const seen = new Set<string>()
    const withMembers = connection.members === 'inline'
    const take = async ({ groups, unusable }: Page, { groups: read, total }: Walk) => {
      if (unusable.length > 0) this.#warn('group_without_id', unusable)
      for (const group of groups) {
        seen.add(group.scim_id)
        // The first row of a group counts.
        if (this.groups.has(group.scim_id)) continue
        if (this.groups.size >= limits.groups) throw tooLarge('groups')
        this.groups.set(group.scim_id, { ...group, members: null })
        if (withMembers) await this.#addMembers(group)
      }
      await stage.flush()
      progress(read, total)
      return !isTrial
    }
    const options = { ...this.#options, offer: this.#offer, withMembers, take }
    let walk = await walkGroups(options)
    if (!isTrial && isDoubtful(walk)) {
      const before = seen.size
      walk = await walkGroups(options, this.#offer.sort ? { sortBy: 'id' } : {})
      refuseIncomplete(walk, seen.size, before)
    }
    if (walk.groups > 0 || walk.unusable === 0) return walk
    throw new SyncFailure('directory_invalid_response', 'a list of groups has no group with a usable id')
  }

  async #addMembers(received: ReceivedGroup): Promise<void> {
    const { scim_id: scimId, members, lacksMembers } = received
    const group = this.groups.get(scimId)
    if (lacksMembers) this.#warn('member_without_id', [scimId])
    else if (members === null) this.#warn('members_unreadable', [scimId])
    if (members === null || group === undefined) return
    this.#memberships += members.length
    const { limits, stage, findFormer } = this.#options
    if (this.#memberships > limits.members) throw tooLarge('memberships')
    this.groups.set(scimId, { ...group, members: await stage.take(members, findFormer(received)) })
  }

  /**
   * Reads members by a request per group. Groups with unreadable members keep the stored ones.
   * @throws {SyncFailure} if more are unreadable than the gate lets a sync remove.
   */
  async #readMembers(): Promise<void> {
    const { client, connection, stage, progress } = this.#options
    const left = [...this.groups.keys()].filter((scimId) => !this.#requested.has(scimId))
    await inParallel(left, async (scimId) => {
      const found = await readById(client, scimId)
      if (found instanceof SyncFailure) this.#unreadable.set(scimId, found)
      else await this.#addMembers(found)
      this.#requested.add(scimId)
      const [first] = this.#unreadable.values()
      const [missing, all] = [this.#unreadable.size, this.groups.size]
      const isTooMuch = missing === all || exceedsGate(missing, all, connection.gate_groups, connection)
      if (first !== undefined && isTooMuch) throw first
    })
    await stage.flush()
    progress(this.#requested.size, this.groups.size)
    if (this.#unreadable.size > 0) this.#warn('members_unreadable', this.#unreadable.keys())
  }

  /** Whether the directory obeys `count`: otherwise its only page may be capped, whatever total it states. */
  async #honoursCount({ query, pages, rows, isEndStated }: Walk): Promise<boolean> {
    if (isEndStated || pages > 1 || rows <= 1) return true
    if (query['count'] === undefined) return false
    const { client, limits } = this.#options
    const page = await orFailure(requestPage(client, { ...query, startIndex: '1', count: '1' }, limits))
    return !(page instanceof SyncFailure) && page.rows <= 1
  }

  async #findStaying(scimIds: readonly string[]): Promise<readonly string[]> {
    if (scimIds.length === 0 || !this.#isProven) return scimIds
    if (this.#isCapped) {
      // A 404 proves nothing if the directory answers for no single group.
      const [listed = ''] = this.groups.keys()
      const found = await readById(this.#options.client, listed)
      return found instanceof SyncFailure ? scimIds : await this.#notGone(scimIds)
    }
    if (scimIds.length <= LOOK_UPS && (await this.#notGone(scimIds)).length === 0) return []
    // A group in neither reading is not shared with this service: directories revoke access in this way.
    return isProof(await this.#readAll()) ? [] : scimIds
  }

  /** The groups that are answered by their id, with anything but 404 or 410. */
  async #notGone(scimIds: readonly string[]): Promise<readonly string[]> {
    const others: string[] = []
    await inParallel(scimIds, async (scimId) => {
      const answer = await orFailure(this.#options.client.get(pathOf(scimId), {}, BRIEF))
      const isGone = !(answer instanceof SyncFailure) && (answer.status === 404 || answer.status === 410)
      if (!isGone) others.push(scimId)
    })
    return others
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
  const detail = `${seen} different groups in two walks, but the directory counts ${total}`
  throw new SyncFailure('directory_incomplete', detail)
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
  const path = pathOf(scimId)
  let answer = await orFailure(client.get(path, ON_REQUEST))
  if ('status' in answer && (answer.status === 400 || answer.status === 501))
    answer = await orFailure(client.get(path))
  // A group that is too large ends the sync: otherwise its stored members would never change again.
  if (answer instanceof SyncFailure && answer.failure === 'directory_too_large') throw answer
  if (answer instanceof SyncFailure) return answer
  const group = answer.status === 200 ? readGroup(answer.body) : undefined
  if (group?.scim_id === scimId) return group
  const what = answer.status === 200 ? 'something that is not this group' : `status ${answer.status}`
  const detail = `the group "${shorten(scimId)}": the request by its id is answered with ${what}`
  return new SyncFailure('directory_invalid_response', detail)
}

/** Does the work for each item, some at a time. */
async function inParallel<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const queue = items.values()
  const worker = async () => {
    for (const item of queue) await work(item)
  }
  await Promise.all(Array.from({ length: PARALLEL }, worker))
}
