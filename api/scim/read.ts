/** Reads all groups of a directory with their members, and decides what the absence of a group proves. */
import { shorten } from '../untrusted/json.ts'
import { BRIEF, type DirectoryClient } from './client.ts'
import type { Connection } from './connections.ts'
import { orFailure, SyncFailure } from './failures.ts'
import type { MemberStage } from './groups.ts'
import { offersCursors, readGroup, type Page, type ReceivedGroup } from './messages.ts'
import { exceedsGate, isLiving, type RemoteGroup, type StoredGroup } from './plan.ts'
import { ON_REQUEST, readList, type Walk } from './walk.ts'

const ONLY_GONE = 'a group that is not listed is only deleted if its id is answered with 404 or 410'
/** What a sync interprets, leaves out or keeps: the first three of the whole directory, the others of some groups. */
const WARNINGS = {
  capped: `The directory ignores count or startIndex, so its list may be capped: ${ONLY_GONE}`,
  not_in_list:
    'The list has no members, but a group by its id does: each was requested, as with --members per_group',
  no_members:
    'The directory returned no members: a group that had some counts as empty, for others they stay unknown',
  group_without_id: `without a usable id: left out, so ${ONLY_GONE}`,
  member_without_id: 'with members that have no usable id: these are left out',
  members_unreadable: 'with members that could not be read: these stay as they are stored',
  kept: 'not in the list, but not provably deleted: these stay',
} as const

/** Groups that are requested by their id if the list has no members, to see whether only the list lacks them. */
const SAMPLES = 5
/** Concurrent requests for single groups. */
const PARALLEL = 4

/** A directory's groups, as a sync reads them. */
export class Directory {
  readonly groups = new Map<string, RemoteGroup>()
  readonly #client: DirectoryClient
  readonly #connection: Connection
  readonly #stage: MemberStage
  readonly #warned = new Map<keyof typeof WARNINGS, Set<string>>()
  /** Groups that were received without members: these are none once another group has some. */
  readonly #empty = new Set<RemoteGroup>()
  #memberships = 0
  /** Whether the directory announces cursors. */
  #hasCursors = false

  constructor(client: DirectoryClient, connection: Connection, stage: MemberStage) {
    this.#client = client
    this.#connection = connection
    this.#stage = stage
  }

  /**
   * Reads all groups, and checks the stored ones that are not listed. Resolves to the ids of those that stay, since nothing
   * proves their deletion.
   * @throws SyncFailure if the groups are unreadable or provably incomplete.
   */
  async read(stored: readonly StoredGroup[]): Promise<ReadonlySet<string>> {
    const { members } = this.#connection
    const config = await orFailure(this.#client.get('/ServiceProviderConfig', {}, BRIEF))
    this.#hasCursors = !(config instanceof SyncFailure) && offersCursors(config.body)
    const walk = await this.#readList(members === 'inline')
    if (walk.isCapped) this.#warn('capped')
    const isLacking = members === 'inline' && (await this.#requestEmpty(walk))
    if (isLacking) this.#warn('not_in_list')
    if (isLacking || members === 'per_group') await this.#requestUnread()
    await this.#addEmpty()
    return new Set(await this.#findStaying(walk, stored))
  }

  async #readList(withMembers: boolean): Promise<Walk> {
    const client = this.#client
    const take = async ({ groups, unusable }: Page) => {
      if (unusable.length > 0) this.#warn('group_without_id', unusable)
      for (const received of groups) {
        const { scim_id, external_id, display_name } = received
        // The first row of a group counts.
        if (this.groups.has(scim_id)) continue
        if (this.groups.size >= client.limits.groups) throw tooLarge('groups')
        const group = { scim_id, external_id, display_name, members: null }
        this.groups.set(scim_id, group)
        if (withMembers) await this.#addMembers(group, received)
      }
      await this.#stage.flush()
    }
    return await readList({ client, hasCursors: this.#hasCursors, withMembers, take })
  }

  /** A sentence per kind of warning; those about groups have their number and the first of them. */
  warnings(): string[] {
    return [...this.#warned].map(([warning, [first, ...others]]) => {
      if (first === undefined) return WARNINGS[warning]
      const all = others.length === 0 ? '1 group' : `${others.length + 1} groups`
      return `${all} ${WARNINGS[warning]} (the first: "${shorten(first)}")`
    })
  }

  #warn(warning: keyof typeof WARNINGS, groups: Iterable<string> = []): void {
    const known = this.#warned.get(warning) ?? new Set()
    for (const group of groups) known.add(group)
    this.#warned.set(warning, known)
  }

  /** Stages the members of a group; empty lists wait for the end of the reading. */
  async #addMembers(group: RemoteGroup, { members, lacksMembers }: ReceivedGroup): Promise<void> {
    this.#empty.delete(group)
    if (lacksMembers) this.#warn('member_without_id', [group.scim_id])
    else if (members === null) this.#warn('members_unreadable', [group.scim_id])
    if (members === null) return
    if (members.length === 0) return void this.#empty.add(group)
    this.#memberships += members.length
    if (this.#memberships > this.#client.limits.members) throw tooLarge('memberships')
    group.members = await this.#stage.take(members, group)
  }

  /** A group without members is empty if the directory supplies members, for others or for this one before. */
  async #addEmpty(): Promise<void> {
    if (this.#memberships === 0 && this.#empty.size > 0 && this.#empty.size === this.groups.size)
      this.#warn('no_members')
    for (const group of this.#empty)
      if (this.#memberships > 0 || this.#stage.hadMembers(group))
        group.members = await this.#stage.take([], group)
  }

  /**
   * Requests groups by their id that are listed without members: those that had some get the members of their own answer,
   * unless the directory answers for no single group. Resolves to whether the list leaves members out: it was requested
   * without, or has none, but some groups have.
   */
  async #requestEmpty({ query }: Walk): Promise<boolean> {
    if ('excludedAttributes' in query) return true
    const former = [...this.#empty].filter((group) => this.#stage.hadMembers(group))
    const full = this.groups.values().find(({ members }) => members !== null)
    const hasControl = full !== undefined && former.length > 0
    if (hasControl && (await orFailure(readById(this.#client, full.scim_id))) instanceof SyncFailure)
      return false
    const samples = full === undefined ? [...this.#empty].slice(0, SAMPLES) : []
    const asked = [...new Set([...former, ...samples])]
    await this.#requestMembers(asked, ({ failure }) => failure !== 'directory_invalid_response')
    return full === undefined && this.#memberships > 0
  }

  /**
   * Requests the members of all groups that have none yet. Groups with unreadable members keep the stored ones.
   * @throws SyncFailure if more are unreadable than the gate lets a sync remove, or the token is not valid any more.
   */
  async #requestUnread(): Promise<void> {
    const gate = this.#connection
    const all = this.groups.size
    let missing = 0
    const unread = [...this.groups.values()].filter(({ members }) => members === null)
    await this.#requestMembers(unread, (failure) => {
      missing += 1
      const isTooMany = missing === all || exceedsGate(missing, all, gate.gate_groups, gate)
      if (isTooMany || failure.cause === 401) throw failure
      return true
    })
  }

  /** Requests these groups by their id; after a failure they keep the stored members if `keeps` says so. */
  async #requestMembers(groups: readonly RemoteGroup[], keeps: (failure: SyncFailure) => boolean) {
    await inParallel(groups, async (group) => {
      const found = await readById(this.#client, group.scim_id)
      if (!(found instanceof SyncFailure)) return await this.#addMembers(group, found)
      if (!keeps(found)) return
      this.#empty.delete(group)
      this.#warn('members_unreadable', [group.scim_id])
    })
    await this.#stage.flush()
  }

  /** The stored groups that are not listed, but not provably deleted. May find further groups. */
  async #findStaying(walk: Walk, stored: readonly StoredGroup[]): Promise<readonly string[]> {
    const isAbsent = ({ scim_id }: StoredGroup) => !this.groups.has(scim_id)
    const absent = stored.filter((group) => isLiving(group) && isAbsent(group))
    if (absent.length === 0) return []
    // A group in neither of two readings is deleted or no longer shared: directories that revoke access still answer for it.
    const again = walk.isProof ? await orFailure(this.#readList(false)) : walk
    if (!(again instanceof SyncFailure) && again.isProof) return []
    const staying = await this.#notGone(absent.filter(isAbsent).map(({ scim_id }) => scim_id))
    if (staying.length > 0) this.#warn('kept', staying)
    return staying
  }

  /** Those of these groups that are answered by their id, with anything but 404 or 410. */
  async #notGone(scimIds: readonly string[]): Promise<readonly string[]> {
    // A 404 proves nothing if the directory answers for no single group.
    const [listed = ''] = this.groups.keys()
    if ((await readById(this.#client, listed)) instanceof SyncFailure) return scimIds
    const others: string[] = []
    await inParallel(scimIds, async (scimId) => {
      const answer = await orFailure(this.#client.get(pathOf(scimId), {}, BRIEF))
      const isGone = 'status' in answer && (answer.status === 404 || answer.status === 410)
      if (!isGone) others.push(scimId)
    })
    return others
  }
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
 * @throws SyncFailure if the whole sync cannot go on.
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
