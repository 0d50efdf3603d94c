/** Requests single groups by the directory's id. */
import type { DirectoryClient } from './client.ts'
import { isOfReply, SyncFailure } from './failures.ts'
import { readGroup, type ReceivedGroup } from './messages.ts'
import { shorten } from '../untrusted/shorten.ts'
import { ON_REQUEST } from './walk.ts'
import type { Warnings } from './warnings.ts'

const GONE = new Set([404, 410])

/**
 * The group with this id, or the failure to read it: any status, another group, or something that is none. `byName`
 * requests the members by name.
 * @throws {SyncFailure} if the whole sync cannot go on.
 */
export async function readById(
  client: DirectoryClient,
  scimId: string,
  warnings: Warnings,
  byName = false,
): Promise<ReceivedGroup | SyncFailure> {
  try {
    const { status, body } = await client.get(pathOf(scimId), byName ? ON_REQUEST : {})
    const group = status === 200 ? readGroup(body, warnings) : undefined
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

/**
 * Whether the directory has a group with this id. A directory may serve lists alone and answer any other path
 * arbitrarily: that is unknown.
 */
export async function lookUp(
  client: DirectoryClient,
  scimId: string,
  warnings: Warnings,
): Promise<'found' | 'gone' | 'unknown'> {
  const answer = await client.getOptional(pathOf(scimId))
  if (answer === undefined) return 'unknown'
  if (GONE.has(answer.status)) return 'gone'
  const isFound = answer.status === 200 && readGroup(answer.body, warnings)?.scimId === scimId
  return isFound ? 'found' : 'unknown'
}

function pathOf(scimId: string): string {
  return `/Groups/${encodeURIComponent(scimId)}`
}

/** Does the work for each item, `width` at a time. */
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
