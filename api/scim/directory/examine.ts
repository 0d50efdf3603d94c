import type { Connection } from './connection-store.ts'
import type { DirectoryClient, Query } from './http/client.ts'
import { readGroupById } from './group-by-id.ts'
import type { RemoteGroup } from './messages.ts'
import { discoverPaging } from './pull.ts'
import { connect, type SyncDependencies } from '../sync/sync.ts'
import { firstPage } from './walk.ts'
import { Warnings } from './warnings.ts'

/**
 * Requests the first page of groups and describes it, as lines of `name: value`.
 * @throws {SyncFailure} if the directory returns no list of groups.
 */
export async function examine(
  connection: Connection,
  signal: AbortSignal,
  dependencies: SyncDependencies,
): Promise<string[]> {
  const client = connect(connection, { signal }, dependencies)
  try {
    const warnings = new Warnings()
    const reading = { ...dependencies, client, warnings }
    const { page, way } = await firstPage({
      ...reading,
      offer: await discoverPaging(client),
      withMembers: connection.members === 'inline',
    })
    const paging = pagingOf(way, page.nextCursor)
    const unknownTotal = paging === 'cursor' ? 'not stated' : 'not stated, so a sync deletes nothing'
    return [
      `address: ${connection.url.href}`,
      `pages by: ${paging}`,
      `groups in all: ${page.total ?? unknownTotal}`,
      `groups on the first page: ${page.groups.length}`,
      ...(await describeMembers(connection, page.groups, reading)),
      ...warnings.lines().map((line) => `warning: ${line}`),
    ]
  } finally {
    await client.close()
  }
}

// Where a sync would read them: a list requested without members shows nothing about them.
async function describeMembers(
  { members: mode }: Connection,
  groups: readonly RemoteGroup[],
  reading: { readonly client: DirectoryClient; readonly warnings: Warnings },
): Promise<string[]> {
  if (mode === 'inline') {
    return [`of these with a list of members: ${groups.filter(({ members }) => members !== null).length}`]
  }
  const [first] = groups
  if (mode === 'off' || first === undefined) return []
  const group = await readGroupById(reading, first.scimId)
  const known = typeof group === 'object' && 'found' in group
  const members = known ? (group.found.members?.count ?? 'not stated') : 'it cannot be read'
  return [`members of the first, requested by its id: ${members}`]
}

function pagingOf(query: Query, nextCursor: string | undefined): string {
  if ('cursor' in query || nextCursor !== undefined) return 'cursor'
  return 'startIndex' in query ? 'index' : 'nothing, all groups come at once'
}
