/** Requests groups one by one, for their members or their existence. */
import { SyncFailure } from '../failures.ts'
import { isOfReply, type Answer, type DirectoryClient } from './http/client.ts'
import { groupCalled, readGroup, type RemoteGroup } from './messages.ts'
import type { Warnings } from './warnings.ts'

export type GroupById =
  | { readonly found: RemoteGroup }
  /** The directory answers that the group does not exist. */
  | 'gone'
  /** Any other answer, or none: the group may exist. */
  | { readonly unknown: SyncFailure }

interface ByIdOptions {
  readonly client: DirectoryClient
  readonly warnings: Warnings
}

/** Requests one group with all retries, since a sync needs its members. */
export async function readGroupById({ client, warnings }: ByIdOptions, scimId: string): Promise<GroupById> {
  try {
    return assess(scimId, await client.get(pathOf(scimId)), warnings)
  } catch (error) {
    // A group that is too large ends the sync: otherwise its stored members would never change again.
    if (isOfReply(error) && error.failure !== 'directory_too_large') return { unknown: error }
    throw error
  }
}

/**
 * The ids of the groups that exist; undefined, after the first such answer, if the directory does not answer for each.
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

// A directory may serve lists alone and answer any other path arbitrarily: that is no evidence.
function assess(scimId: string, { status, body }: Answer, warnings: Warnings): GroupById {
  if (status === 404 || status === 410) return 'gone'
  if (status !== 200) return unknown(scimId, `status ${status}`)
  const group = readGroup(body, warnings)
  if (group?.scimId === scimId) return { found: group }
  return unknown(scimId, group === undefined ? 'something that is not a group' : 'another group')
}

function unknown(scimId: string, what: string): GroupById {
  return {
    unknown: new SyncFailure(
      'directory_invalid_response',
      `${groupCalled(scimId)}: the request by its id is answered with ${what}`,
    ),
  }
}

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
