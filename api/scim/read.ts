/** Reads all groups of a directory with their members, and decides what the absence of a group proves. */
import type { DirectoryClient } from './client.ts'
import type { MemberMode } from './connections.ts'
import { isOfReply, SyncFailure } from './failures.ts'
import type { MemberList, RemoteGroup } from './group.ts'
import { inParallel, lookUp, readById } from './group-by-id.ts'
import type { SyncLimits } from './limits.ts'
import { readListOffer, type ListOffer, type Member, type ReceivedGroup } from './messages.ts'
import { requestPage, walkGroups, type Progress, type Walk, type WalkOptions } from './walk.ts'
import { Warnings } from './warnings.ts'

export interface ReadOptions {
  readonly client: DirectoryClient
  readonly limits: SyncLimits
  readonly members: MemberMode
  readonly progress: Progress
  /** Whether a sync goes on if the members of `groups` of all groups are unreadable. */
  readonly mayMiss: (groups: number, all: number) => boolean
  readonly takeMembers: (group: ReceivedGroup, members: readonly Member[]) => Promise<MemberList>
  /** Called after each page. */
  readonly onPage: () => Promise<void>
}

/** The content of a directory. */
export interface Directory {
  readonly groups: ReadonlyMap<string, RemoteGroup>
  readonly warnings: Warnings
  /**
   * Checks groups that are not listed. Resolves to the ids of those that stay, since nothing proves their deletion. May
   * find further groups.
   */
  readonly confirmAbsent: (scimIds: readonly string[]) => Promise<ReadonlySet<string>>
}

/**
 * Reads all groups.
 * @throws {SyncFailure} if they are unreadable or provably incomplete.
 */
export async function readDirectory(options: ReadOptions): Promise<Directory> {
  const reading = new Reading(options, await discoverLists(options.client))
  const list = await reading.readList()
  await reading.readMembers()
  const isCapped = !(await reading.honoursCount(list.walk))
  if (isCapped) reading.warnings.addOfDirectory('capped')
  if (reading.suppliesNoMembers()) reading.warnings.addOfDirectory('no_members')
  return {
    groups: reading.groups,
    warnings: reading.warnings,
    async confirmAbsent(scimIds) {
      const staying = await reading.findStaying(scimIds, { isProven: list.isProven, isCapped })
      for (const scimId of staying) reading.warnings.add('kept', scimId)
      return staying
    },
  }
}

/** What the directory offers for lists; without an answer it is requested by index. */
export async function discoverLists(client: DirectoryClient): Promise<ListOffer> {
  const answer = await client.getOptional('/ServiceProviderConfig')
  return readListOffer(answer?.status === 200 ? answer.body : undefined)
}

/** One reading of the whole list. */
interface WholeList {
  /** Whether the list proves that a group is absent. */
  readonly isProven: boolean
  readonly walk: Walk
}

/** By-name requests for the members of single groups, while none has returned any. */
const TRIES_ON_REQUEST = 10

class Reading {
  readonly groups = new Map<string, RemoteGroup>()
  readonly warnings = new Warnings()
  readonly #options: ReadOptions
  readonly #walking: WalkOptions
  #members = 0
  /** Groups whose members have been requested by their id. */
  readonly #read = new Set<string>()
  readonly #unreadable = new Map<string, SyncFailure>()

  constructor(options: ReadOptions, offer: ListOffer) {
    this.#options = options
    this.#walking = {
      ...options,
      offer,
      withMembers: options.members === 'inline',
      warnings: this.warnings,
      memory: { membersOnRequest: undefined },
    }
  }

  /**
   * Reads the list, twice if the first reading is doubtful.
   * @throws {SyncFailure} if it is provably incomplete.
   */
  async readList(): Promise<WholeList> {
    const seen = new Set<string>()
    const take = async (groups: readonly ReceivedGroup[]) => {
      for (const group of groups) {
        seen.add(group.scimId)
        await this.#add(group)
      }
      await this.#options.onPage()
    }
    let walk = await walkGroups(this.#walking, take)
    if (isDoubtful(walk)) {
      const before = seen.size
      // Without a stable order, pages overlap and miss groups.
      walk = await walkGroups(this.#walking, take, this.#walking.offer.sort ? { sortBy: 'id' } : {})
      refuseIncomplete(walk, { seen: seen.size, isSteady: seen.size === before })
    }
    if (walk.repeats === 'full') {
      const detail = `${walk.groups} groups, and the directory returns the same ones for the next page with any paging`
      throw new SyncFailure('directory_incomplete', detail)
    }
    if (walk.groups === 0 && walk.unusable > 0) {
      throw new SyncFailure('directory_invalid_response', 'a list of groups has no group with a usable id')
    }
    return { isProven: (walk.total !== undefined || walk.endStated) && walk.unusable === 0, walk }
  }

  /** The first row of a group counts. */
  async #add(group: ReceivedGroup): Promise<void> {
    if (this.groups.has(group.scimId)) return
    const { groups, members } = this.#options.limits
    if (this.groups.size >= groups) throw tooLarge(`more than ${groups} groups`)
    const isInline = this.#options.members === 'inline'
    this.groups.set(group.scimId, { ...group, members: isInline ? await this.#membersOf(group) : 'unknown' })
    if (this.#members > members) throw tooLarge(`more than ${members} memberships`)
  }

  async #membersOf(group: ReceivedGroup): Promise<RemoteGroup['members']> {
    if (group.members === 'none') return 'none'
    if (group.members === 'unreadable') return 'unknown'
    const list = await this.#options.takeMembers(group, group.members)
    this.#members += list.count
    return list
  }

  /**
   * Reads members by a request per group, if the connection says so. Groups with unreadable members keep the stored ones.
   * @throws {SyncFailure} if too many are unreadable.
   */
  async readMembers(): Promise<void> {
    if (this.#options.members !== 'per_group') return
    const left = [...this.groups.values()].filter(({ scimId }) => !this.#read.has(scimId))
    await inParallel(left, this.#options.limits.parallel, async (group) => {
      const found = await this.#readById(group.scimId)
      if (found instanceof SyncFailure) this.#unreadable.set(group.scimId, found)
      else this.groups.set(group.scimId, { ...group, members: await this.#membersOf(found) })
      this.#read.add(group.scimId)
      const [first] = this.#unreadable.values()
      const [missing, all] = [this.#unreadable.size, this.groups.size]
      if (first !== undefined && (missing === all || !this.#options.mayMiss(missing, all))) throw first
      if (this.#members > this.#options.limits.members) throw tooLarge('too many memberships')
      this.#options.progress(this.#read.size, all)
    })
    await this.#options.onPage()
    for (const scimId of this.#unreadable.keys()) this.warnings.add('members_unreadable', scimId)
  }

  async #readById(scimId: string): Promise<ReceivedGroup | SyncFailure> {
    const { client, memory } = this.#walking
    const read = async (byName: boolean) => await readById(client, scimId, this.warnings, byName)
    const found = await read(memory.membersOnRequest === true)
    if (found instanceof SyncFailure || memory.membersOnRequest !== undefined) return found
    if (found.members !== 'none') memory.membersOnRequest = false
    if (found.members !== 'none' || this.#read.size >= TRIES_ON_REQUEST) return found
    const byName = await read(true)
    if (byName instanceof SyncFailure || byName.members === 'none') return found
    memory.membersOnRequest = true
    return byName
  }

  suppliesNoMembers(): boolean {
    const isRead = this.#options.members !== 'off' && this.groups.size > 0
    return isRead && [...this.groups.values()].every(({ members }) => members === 'none')
  }

  /** Whether the directory obeys `count`: otherwise its only page may be capped, whatever total it states. */
  async honoursCount({ way, pages, rows, endStated }: Walk): Promise<boolean> {
    if (endStated || pages > 1 || rows <= 1) return true
    if (!('count' in way)) return false
    try {
      const probe = await requestPage(this.#walking, { ...way, count: '1' }, { tries: 1 })
      return 'page' in probe && probe.page.rows <= 1
    } catch (error) {
      if (isOfReply(error)) return false
      throw error
    }
  }

  async findStaying(
    scimIds: readonly string[],
    { isProven, isCapped }: { readonly isProven: boolean; readonly isCapped: boolean },
  ): Promise<ReadonlySet<string>> {
    if (scimIds.length === 0 || !isProven) return new Set(scimIds)
    if (isCapped) return await this.#findUnproven(scimIds)
    const existing = new Set<string>()
    if (scimIds.length <= this.#options.limits.lookUps) {
      const found = await this.#lookUpAll(scimIds)
      if (found.gone.size === scimIds.length) return new Set()
      for (const scimId of found.existing) existing.add(scimId)
    }
    const { isProven: isConfirmed } = await this.readList()
    await this.readMembers()
    if (!isConfirmed) return new Set(scimIds)
    // A group in neither reading is not shared with this service: directories revoke access in this way.
    for (const scimId of existing) if (!this.groups.has(scimId)) this.warnings.add('not_listed', scimId)
    return new Set()
  }

  /** Only a 404 or 410 proves anything, and only if the directory answers for single groups at all. */
  async #findUnproven(scimIds: readonly string[]): Promise<ReadonlySet<string>> {
    const [listed] = this.groups.keys()
    const answers =
      listed === undefined ? 'unknown' : await lookUp(this.#walking.client, listed, this.warnings)
    if (answers !== 'found') return new Set(scimIds)
    const { gone } = await this.#lookUpAll(scimIds)
    return new Set(scimIds.filter((scimId) => !gone.has(scimId)))
  }

  async #lookUpAll(scimIds: readonly string[]) {
    const gone = new Set<string>()
    const existing = new Set<string>()
    await inParallel(scimIds, this.#options.limits.parallel, async (scimId) => {
      const state = await lookUp(this.#walking.client, scimId, this.warnings)
      if (state === 'gone') gone.add(scimId)
      if (state === 'found') existing.add(scimId)
    })
    return { gone, existing }
  }
}

// Fewer groups than the total, or a total that changed during the walk: index paging skips rows when others are
// deleted.
function isDoubtful({ total, groups, unusable, unsteady }: Walk): boolean {
  return unsteady || (total !== undefined && groups + unusable < total)
}

// Repeated rows are not missing groups, if two walks return all rows and the same groups.
function refuseIncomplete(
  { total, rows, unusable }: Walk,
  { seen, isSteady }: { readonly seen: number; readonly isSteady: boolean },
): void {
  if (total === undefined || seen + unusable >= total || (isSteady && rows >= total)) return
  const detail = `${seen} different groups in two walks, but the directory counts ${total}`
  throw new SyncFailure('directory_incomplete', detail)
}

function tooLarge(detail: string): SyncFailure {
  return new SyncFailure('directory_too_large', detail)
}
