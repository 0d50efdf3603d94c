/** Brings all groups of a directory together, and judges whether that was all of them. */
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
  /** Whether a sync goes on when the members of so many of all groups cannot be read. */
  readonly mayMiss: (groups: number, all: number) => boolean
}

/** What a directory holds. */
export interface Pulled {
  readonly groups: RemoteGroups
  /** Whether a group that is not among them may count as deleted. */
  readonly complete: boolean
  readonly warnings: Warnings
  /** Ids of groups that are in no list, and that the directory still has. */
  readonly unlisted: ReadonlySet<string>
  /**
   * Looks at absent groups once more, so that none is deleted for having been overlooked. Gives whether those that are
   * still absent may count as deleted.
   */
  readonly confirmAbsent: (scimIds: readonly string[]) => Promise<boolean>
}

/**
 * Reads all groups.
 * @throws {SyncFailure} when they cannot be read, or are provably not all of them.
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
      // What only a second reading shows was overlooked; what neither reading shows is not shared with this service.
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

/** How the directory pages; one that does not say so is requested by index. */
export async function discoverPaging(client: DirectoryClient): Promise<PagingOffer> {
  const answer = await client.getOptional('/ServiceProviderConfig')
  return readPagingOffer(answer?.status === 200 ? answer.body : undefined)
}

/**
 * Reads the list into `groups`, a second time where the first one is doubtful. Gives whether it is provably whole.
 * @throws {SyncFailure} when it is provably not.
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
    const detail = `${end.groups} groups, and the directory gives the same ones for the next page, whatever the paging`
    throw new SyncFailure('directory_incomplete', detail)
  }
  if (end.groups === 0 && end.unusable > 0) {
    throw new SyncFailure('directory_invalid_response', 'a list of groups has no group with a usable id')
  }
  return (end.total !== undefined || end.endStated) && end.unusable === 0
}

// Fewer groups than the total, or a total that moved during the walk: index paging skips rows when others go.
function isDoubtful({ total, groups, unusable, unsteady }: WalkEnd): boolean {
  return unsteady || (total !== undefined && groups + unusable < total)
}

// Rows that repeat others are no groups that are missing, where two walks bring all rows and the same groups.
function refuseIncomplete(
  { total, rows, unusable }: WalkEnd,
  { seen, isSteady }: { readonly seen: number; readonly isSteady: boolean },
): void {
  if (total === undefined || seen + unusable >= total || (isSteady && rows >= total)) return
  const detail = `${seen} different groups in two walks, where the directory counts ${total}`
  throw new SyncFailure('directory_incomplete', detail)
}
