/** Groups requested one by one: whether they exist, and who their members are. */
import { SyncFailure } from '../failures.ts'
import { isOfReply, type Answer, type DirectoryClient } from './http/client.ts'
import { groupCalled, readGroup, type RemoteGroup } from './messages.ts'
import type { Warnings } from './warnings.ts'

/** What a directory says of one group. */
export type GroupById =
  | { readonly found: RemoteGroup }
  /** The directory says that there is no such group. */
  | 'gone'
  /** It says something else, or nothing: that is no knowledge. */
  | { readonly unknown: SyncFailure }

interface ByIdOptions {
  readonly client: DirectoryClient
  readonly warnings: Warnings
}

/** Requests one group by its id, with all patience: a sync needs its members. */
export async function readGroupById({ client, warnings }: ByIdOptions, scimId: string): Promise<GroupById> {
  try {
    return assess(scimId, await client.get(pathOf(scimId)), warnings)
  } catch (error) {
    // One that is too large ends the sync: it would be stored as it was for good.
    if (isOfReply(error) && error.failure !== 'directory_too_large') return { unknown: error }
    throw error
  }
}

/**
 * Whether the groups with these ids exist: the ids of those that do; undefined where the directory does not say it of
 * each, and then no more of them are requested.
 */
export async function lookUpGroups(
  { client, warnings }: ByIdOptions,
  scimIds: readonly string[],
  parallel: number,
): Promise<ReadonlySet<string> | undefined> {
  const existing = new Set<string>()
  let isKnown = true
  await inParallel(scimIds, parallel, async (scimId) => {
    if (!isKnown) return
    const answer = await client.getOptional(pathOf(scimId))
    const group = answer === undefined ? undefined : assess(scimId, answer, warnings)
    if (group === 'gone') return
    if (group !== undefined && 'found' in group) existing.add(scimId)
    else isKnown = false
  })
  return isKnown ? existing : undefined
}

function pathOf(scimId: string): string {
  return `/Groups/${encodeURIComponent(scimId)}`
}

// A directory may know lists alone, and answer any other path with whatever it has: that says nothing of the group.
function assess(scimId: string, { status, body }: Answer, warnings: Warnings): GroupById {
  if (status === 404 || status === 410) return 'gone'
  if (status !== 200) return unknown(scimId, `is answered with status ${status}`)
  const group = readGroup(body, warnings)
  if (group?.scimId === scimId) return { found: group }
  return unknown(
    scimId,
    group === undefined ? 'is answered with something else' : 'is answered with another group',
  )
}

function unknown(scimId: string, what: string): GroupById {
  return {
    unknown: new SyncFailure('directory_invalid_response', `${groupCalled(scimId)} ${what} by its id`),
  }
}

/** Several workers on one queue. */
export async function inParallel<Item>(
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
