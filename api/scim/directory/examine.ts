import type { Connection } from './connection-store.ts'
import type { DirectoryClient, Query } from './client.ts'
import type { SyncLimits } from './limits.ts'
import type { RemoteGroup } from './messages.ts'
import { discoverCursor, readOne } from './pull.ts'
import { connect, type SyncDependencies } from '../sync/sync.ts'
import { firstPage } from './walk.ts'

/**
 * Asks a directory for its first page of groups and tells what it found, as lines of `name: value`.
 * @throws {SyncFailure} when the directory gives no list of groups.
 */
export async function examine(
  connection: Connection,
  signal: AbortSignal,
  dependencies: SyncDependencies,
): Promise<string[]> {
  const client = connect(connection, signal, dependencies)
  try {
    const cursor = await discoverCursor(client)
    const withMembers = connection.members === 'inline'
    const [{ groups, total, nextCursor }, query] = await firstPage({
      ...dependencies,
      client,
      cursor,
      withMembers,
    })
    const paging = pagingOf(query, nextCursor)
    return [
      `address: ${connection.url.href}`,
      `pages by: ${paging}`,
      `groups in all: ${total ?? (paging === 'cursor' ? 'not told' : 'not told, so a sync deletes nothing')}`,
      `groups on the first page: ${groups.length}`,
      ...(await membersOf(connection, groups, { client, limits: dependencies.limits })),
    ]
  } finally {
    await client.close()
  }
}

// Where a sync would take them from: a list that was asked to leave members out tells nothing of them.
async function membersOf(
  { members: mode }: Connection,
  groups: readonly RemoteGroup[],
  { client, limits }: { readonly client: DirectoryClient; readonly limits: SyncLimits },
): Promise<string[]> {
  if (mode === 'inline') {
    return [`of these with a list of members: ${groups.filter(({ members }) => members !== null).length}`]
  }
  const [first] = groups
  if (mode === 'off' || first === undefined) return []
  const group = await readOne(client, first.scimId, limits)
  const told = typeof group === 'string' ? 'it cannot be read' : (group.members?.count ?? 'not told')
  return [`members of the first, asked for by its id: ${told}`]
}

function pagingOf(query: Query, nextCursor: string | undefined): string {
  if ('cursor' in query || nextCursor !== undefined) return 'cursor'
  return 'startIndex' in query ? 'index' : 'nothing, all groups come at once'
}
