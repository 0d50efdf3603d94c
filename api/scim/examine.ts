import type { Connection } from './connection-store.ts'
import type { Query } from './directory-client.ts'
import { discoverCursor } from './pull.ts'
import { connect, type SyncEffects } from './sync.ts'
import { firstPage } from './walk.ts'

/**
 * Asks a directory for its first page of groups and tells what it found, as lines of `name: value`.
 * @throws {SyncFailure} when the directory gives no list of groups.
 */
export async function examine(
  connection: Connection,
  signal: AbortSignal,
  effects: SyncEffects,
): Promise<string[]> {
  const client = connect(connection, signal, effects)
  try {
    const cursor = await discoverCursor(client)
    const withMembers = connection.members === 'inline'
    const [{ groups, total, nextCursor }, query] = await firstPage({
      ...effects,
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
      `of these with a list of members: ${groups.filter((group) => group.members !== null).length}`,
    ]
  } finally {
    await client.close()
  }
}

function pagingOf(query: Query, nextCursor: string | undefined): string {
  if ('cursor' in query || nextCursor !== undefined) return 'cursor'
  return 'startIndex' in query ? 'index' : 'nothing, all groups come at once'
}
