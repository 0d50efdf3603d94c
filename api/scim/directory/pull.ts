/** Brings all groups of a directory together, and judges whether that was all of them. */
import type { DirectoryClient } from './client.ts'
import { SyncFailure } from '../failures.ts'
import type { SyncLimits } from './limits.ts'
import { groupCalled, offersCursor, readGroup, type RemoteGroup } from './messages.ts'
import {
  checkMembers,
  checkSize,
  walkGroups,
  type Found,
  type Progress,
  type WalkEnd,
  type WalkOptions,
} from './walk.ts'

/** Where members come from: the list of groups, one request per group, or nowhere. */
export const MEMBER_MODES = ['inline', 'per_group', 'off'] as const
export type MemberMode = (typeof MEMBER_MODES)[number]

export interface PullOptions {
  readonly client: DirectoryClient
  readonly limits: SyncLimits
  readonly members: MemberMode
  readonly progress: Progress
}

/** What a directory holds. */
export interface Pulled {
  readonly groups: Found
  /** Whether a group that is not among them may count as deleted. */
  readonly complete: boolean
  /** Looks at absent groups once more, so that none is deleted for having been overlooked. */
  readonly confirmAbsent: (scimIds: readonly string[]) => Promise<void>
}

/**
 * Reads all groups.
 * @throws {SyncFailure} when they cannot be read, or are provably not all of them.
 */
export async function pull(options: PullOptions): Promise<Pulled> {
  const cursor = await discoverCursor(options.client)
  const walking: WalkOptions = { ...options, cursor, withMembers: options.members === 'inline' }
  const groups: Found = new Map()
  let end = await walkGroups(walking, groups)
  let walks = 1
  if (isDoubtful(end, groups)) {
    end = await walkGroups(walking, groups)
    walks += 1
    refuseIncomplete(end, groups)
  }
  const asked = new Set<string>()
  await completeMembers(walking, options.members, { groups, asked })

  return {
    groups,
    complete: end.total !== undefined || end.endTold,
    async confirmAbsent(scimIds) {
      const told =
        scimIds.length <= options.limits.lookUps && (await lookUp(options, scimIds, { groups, asked }))
      if (!told && walks < 2) await walkGroups(walking, groups)
      await completeMembers(walking, options.members, { groups, asked })
    },
  }
}

/** Whether the directory offers paging by cursor; one that does not tell is asked by index. */
export async function discoverCursor(client: DirectoryClient): Promise<boolean> {
  try {
    const { status, body } = await client.get('/ServiceProviderConfig', {}, 1)
    return status === 200 && offersCursor(body)
  } catch (error) {
    if (error instanceof SyncFailure && isOfTheReply(error)) return false
    throw error
  }
}

// Other failures (an address out of reach, the end of the time) hold for every request.
function isOfTheReply({ failure }: SyncFailure): boolean {
  return ['directory_unauthorized', 'directory_invalid_response', 'directory_unreachable'].includes(failure)
}

// Fewer groups than the total, or a total that moved during the walk: index paging skips rows when others go.
function isDoubtful({ total, unsteady }: WalkEnd, groups: Found): boolean {
  return unsteady || (total !== undefined && groups.size < total)
}

function refuseIncomplete({ total }: WalkEnd, groups: Found): void {
  if (total !== undefined && groups.size < total) {
    const detail = `${groups.size} different groups in two walks, where the directory counts ${total}`
    throw new SyncFailure('directory_incomplete', detail)
  }
}

interface LookedUp {
  readonly groups: Found
  /** Ids of the groups whose own reply was read, so that it need not be asked for again. */
  readonly asked: Set<string>
}

/** What a directory tells of a group that it is asked for by its id. */
type LookUp = RemoteGroup | 'gone' | 'untold'

// Whether the directory told of each group if it exists; those that do are added to the groups.
async function lookUp(
  { client, limits }: PullOptions,
  scimIds: readonly string[],
  { groups, asked }: LookedUp,
): Promise<boolean> {
  const answers = await inParallel(scimIds, limits.parallel, (scimId) => lookUpOne(client, scimId, limits))
  for (const group of answers) {
    if (typeof group !== 'object') continue
    groups.set(group.scimId, group)
    asked.add(group.scimId)
  }
  return !answers.includes('untold')
}

// A directory may know lists alone, and answer any other path with whatever it has: that tells nothing of the group.
async function lookUpOne(client: DirectoryClient, scimId: string, limits: SyncLimits): Promise<LookUp> {
  try {
    return await readOne(client, scimId, limits)
  } catch (error) {
    if (error instanceof SyncFailure && error.failure === 'directory_invalid_response') return 'untold'
    throw error
  }
}

async function completeMembers(
  walking: WalkOptions,
  mode: MemberMode,
  { groups, asked }: LookedUp,
): Promise<void> {
  if (mode === 'off') {
    for (const [scimId, group] of groups) groups.set(scimId, { ...group, members: null })
  }
  if (mode !== 'per_group') return
  const { client, limits, progress } = walking
  const open = [...groups.keys()].filter((scimId) => !asked.has(scimId))
  const gone: string[] = []
  let memberships = 0
  await inParallel(open, limits.parallel, async (scimId) => {
    const group = await readOne(client, scimId, limits)
    if (group === 'untold') throw unreadable(scimId)
    if (group === 'gone') gone.push(scimId)
    else groups.set(scimId, group)
    memberships += groups.get(scimId)?.members?.count ?? 0
    checkSize(groups, memberships, limits)
    asked.add(scimId)
    progress(asked.size, groups.size)
  })
  if (gone.length > 0) await dropDeleted(walking, gone, groups)
}

// Deleted since they were listed, if the list has them no more. One that it keeps is there, whatever its own request
// says: proxies answer 404 to a slash in an id, and some directories to every group.
async function dropDeleted(walking: WalkOptions, gone: readonly string[], groups: Found): Promise<void> {
  const listed: Found = new Map()
  await walkGroups(walking, listed)
  for (const scimId of gone) {
    if (listed.has(scimId)) throw unreadable(scimId)
    groups.delete(scimId)
  }
}

function unreadable(scimId: string): SyncFailure {
  const detail = `${groupCalled(scimId)} is listed, and cannot be read by its id`
  return new SyncFailure('directory_invalid_response', detail)
}

/** Asks for one group by its id. */
export async function readOne(client: DirectoryClient, scimId: string, limits: SyncLimits): Promise<LookUp> {
  const { status, body } = await client.get(`/Groups/${encodeURIComponent(scimId)}`)
  if (status === 404 || status === 410) return 'gone'
  if (status !== 200) return 'untold'
  const group = readGroup(body)
  if (group.scimId !== scimId) {
    const detail = `${groupCalled(scimId)} was asked for by its id, and ${groupCalled(group.scimId)} came`
    throw new SyncFailure('directory_invalid_response', detail)
  }
  checkMembers(group, limits)
  return group
}

// Several workers on one queue; the results come in no particular order.
async function inParallel<Item, Result>(
  items: readonly Item[],
  width: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const queue = items.values()
  const results: Result[] = []
  const worker = async () => {
    for (const item of queue) results.push(await work(item))
  }
  await Promise.all(Array.from({ length: width }, worker))
  return results
}
