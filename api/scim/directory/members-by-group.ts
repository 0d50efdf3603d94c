/** Reads members group by group if the list of groups lacks them. */
import { SyncFailure } from '../failures.ts'
import type { MemberMode } from './connection-options.ts'
import { inParallel, readGroupById } from './group-by-id.ts'
import { groupCalled } from './messages.ts'
import type { RemoteGroups } from './remote-groups.ts'
import { walkGroups, type WalkOptions } from './walk.ts'

interface Completing {
  readonly members: MemberMode
  /** Whether a sync goes on if the members of `groups` of all groups are unreadable. */
  readonly mayMiss: (groups: number, all: number) => boolean
  readonly walking: WalkOptions
  readonly groups: RemoteGroups
  /** Ids of the groups that are complete. */
  readonly read: Set<string>
}

/**
 * Completes the members of the groups by the connection's mode. Groups with unreadable members get none, so that their
 * stored ones stay.
 * @throws {SyncFailure} if too many are unreadable.
 */
export async function completeMembers(options: Completing): Promise<void> {
  if (options.members === 'off') withoutMembers(options.groups, options.groups.ids())
  if (options.members === 'per_group') await readMembers(options)
}

async function readMembers({ walking, groups, read, mayMiss }: Completing): Promise<void> {
  const { limits, progress, warnings } = walking
  const gone: string[] = []
  const unreadable = new Map<string, SyncFailure>()
  await inParallel(
    groups.ids().filter((scimId) => !read.has(scimId)),
    limits.parallel,
    async (scimId) => {
      const group = await readGroupById(walking, scimId)
      if (group === 'gone') gone.push(scimId)
      else if ('found' in group) groups.add(group.found)
      else unreadable.set(scimId, group.unknown)
      refuseTooMany(unreadable, groups.size, mayMiss)
      read.add(scimId)
      progress(read.size, groups.size)
    },
  )
  for (const scimId of await dropDeleted(walking, gone, groups)) unreadable.set(scimId, listedOnly(scimId))
  refuseTooMany(unreadable, groups.size, mayMiss)
  withoutMembers(groups, unreadable.keys())
  for (const scimId of unreadable.keys()) warnings.add('members_unreadable', scimId)
}

/**
 * Drops groups that were deleted after the listing, and returns the listed ones: they exist, whatever their own request
 * returns. Proxies answer 404 to a slash in an id, and some directories to every group.
 */
async function dropDeleted(
  walking: WalkOptions,
  gone: readonly string[],
  groups: RemoteGroups,
): Promise<readonly string[]> {
  if (gone.length === 0) return []
  const listed = new Set<string>()
  await walkGroups(walking, ({ scimId }) => listed.add(scimId))
  for (const scimId of gone) if (!listed.has(scimId)) groups.delete(scimId)
  return gone.filter((scimId) => listed.has(scimId))
}

function refuseTooMany(
  unreadable: ReadonlyMap<string, SyncFailure>,
  all: number,
  mayMiss: Completing['mayMiss'],
): void {
  const [first] = unreadable.values()
  if (first !== undefined && (unreadable.size === all || !mayMiss(unreadable.size, all))) throw first
}

function listedOnly(scimId: string): SyncFailure {
  const detail = `${groupCalled(scimId)} is listed, but cannot be read by its id`
  return new SyncFailure('directory_invalid_response', detail)
}

function withoutMembers(groups: RemoteGroups, scimIds: Iterable<string>): void {
  for (const scimId of scimIds) {
    const group = groups.get(scimId)
    if (group !== undefined) groups.add({ ...group, members: null })
  }
}
