import type { Connection } from './connection-store.ts'
import { SyncFailure } from './failures.ts'
import { offersCursor, readPage } from './messages.ts'
import { connect, type SyncEffects } from './sync.ts'

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
    const list = await client.get('/Groups', { startIndex: '1', count: String(effects.limits.pageSize) })
    if (list.status !== 200) {
      throw new SyncFailure('directory_invalid_response', `GET /Groups: status ${list.status}`)
    }
    const { groups, total, nextCursor } = readPage(list.body)
    const config = await client.get('/ServiceProviderConfig', {}, 1).catch(() => undefined)
    const withMembers = groups.filter((group) => group.members !== null).length
    return [
      `address: ${connection.url.href}`,
      `groups in all: ${total ?? 'not told, so a sync deletes nothing unless the directory pages by cursor'}`,
      `groups on the first page: ${groups.length}`,
      `of these with members: ${withMembers}`,
      `pages by: ${offersCursor(config?.body) || nextCursor !== undefined ? 'cursor' : 'index'}`,
    ]
  } finally {
    await client.close()
  }
}
