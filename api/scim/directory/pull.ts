/** Reads all groups of a directory, and decides whether the list is complete. */
import { SyncFailure } from '../failures.ts'
import type { DirectoryClient } from './http/client.ts'
import { lookUpGroups } from './group-by-id.ts'
import type { SyncLimits } from './limits.ts'
import type { MemberMode } from './connection-options.ts'
import { completeMembers } from './members-by-group.ts'
import { readPagingOffer, type PagingOffer, type RemoteGroup } from './messages.ts'
import { RemoteGroups } from './remote-groups.ts'
import { walkGroups, type Progress, type WalkEnd, type WalkOptions } from './walk.ts'
import { Warnings } from './warnings.ts'

export interface PullOptions {
  readonly client: DirectoryClient
  readonly limits: SyncLimits
  readonly members: MemberMode
  readonly progress: Progress
  /** Whether a sync goes on if the members of `groups` of all groups are unreadable. */
  readonly mayMiss: (groups: number, all: number) => boolean
}

/** The content of a directory. */
export interface Pulled {
  readonly groups: RemoteGroups
  /** Whether an absent group may count as deleted. */
  readonly complete: boolean
  readonly warnings: Warnings
  /** Ids of groups that exist in the directory but in no list. */
  readonly unlisted: ReadonlySet<string>
  /**
   * Checks absent groups again, so that an incomplete list deletes none. Returns whether the ones that are still absent
   * may count as deleted.
   */
  readonly confirmAbsent: (scimIds: readonly string[]) => Promise<boolean>
}

/**
 * Reads all groups.
 * @throws {SyncFailure} if they are unreadable or provably incomplete.
 */
export async function pull(options: PullOptions): Promise<Pulled> {
  const { client, limits, members } = options
  const warnings = new Warnings()
  const offer = await discoverPaging(client)
  const walking: WalkOptions = { ...options, offer, withMembers: members === 'inline', warnings }
  const groups = new RemoteGroups(limits)
  const complete = await readWholeList(walking, groups)
  const read = new Set<string>()
  const unlisted = new Set<string>()
  const completing = { ...options, walking, groups, read }
  await completeMembers(completing)

  return {
    groups,
    complete,
    warnings,
    unlisted,
    async confirmAbsent(scimIds) {
      if (scimIds.length === 0) return complete
      const mayLookUp = scimIds.length <= limits.lookUps
      const existing = mayLookUp
        ? await lookUpGroups({ client, warnings }, scimIds, limits.parallel)
        : undefined
      if (existing?.size === 0) return complete
      // Groups that only the second reading shows. A group in neither is not shared with this service.
      const overlooked = new RemoteGroups(limits)
      const isWhole = await readWholeList(walking, overlooked, ({ scimId }) => !groups.has(scimId))
      for (const group of overlooked.values()) groups.add(group)
      for (const scimId of existing ?? []) {
        if (groups.has(scimId)) continue
        unlisted.add(scimId)
        warnings.add('not_listed', scimId)
      }
      await completeMembers(completing)
      return complete && isWhole
    },
  }
}

/** The directory's paging options; without an answer it is requested by index. */
export async function discoverPaging(client: DirectoryClient): Promise<PagingOffer> {
  const answer = await client.getOptional('/ServiceProviderConfig')
  return readPagingOffer(answer?.status === 200 ? answer.body : undefined)
}

/**
 * Reads the list into `groups`, twice if the first reading is doubtful. Returns whether it is provably complete.
 * @throws {SyncFailure} if it is provably incomplete.
 */
async function readWholeList(
  walking: WalkOptions,
  groups: RemoteGroups,
  isWanted: (group: RemoteGroup) => boolean = () => true,
): Promise<boolean> {
  const seen = new Set<string>()
  const add = (group: RemoteGroup) => {
    seen.add(group.scimId)
    if (isWanted(group)) groups.add(group)
  }
  let end = await walkGroups(walking, add)
  if (isDoubtful(end)) {
    const before = seen.size
    end = await walkGroups(walking, add)
    refuseIncomplete(end, { seen: seen.size, isSteady: seen.size === before })
  }
  if (end.repeats === 'full') {
    const detail = `${end.groups} groups, and the directory returns the same ones for the next page with any paging`
    throw new SyncFailure('directory_incomplete', detail)
  }
  if (end.groups === 0 && end.unusable > 0) {
    throw new SyncFailure('directory_invalid_response', 'a list of groups has no group with a usable id')
  }
  return (end.total !== undefined || end.endStated) && end.unusable === 0
}

// Fewer groups than the total, or a total that changed during the walk: index paging skips rows when others are
// deleted.
function isDoubtful({ total, groups, unusable, unsteady }: WalkEnd): boolean {
  return unsteady || (total !== undefined && groups + unusable < total)
}

// Repeated rows are not missing groups, if two walks return all rows and the same groups.
function refuseIncomplete(
  { total, rows, unusable }: WalkEnd,
  { seen, isSteady }: { readonly seen: number; readonly isSteady: boolean },
): void {
  if (total === undefined || seen + unusable >= total || (isSteady && rows >= total)) return
  const detail = `${seen} different groups in two walks, but the directory counts ${total}`
  throw new SyncFailure('directory_incomplete', detail)
}
