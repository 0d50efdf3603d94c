import { createClient, type ClientDependencies, type DirectoryClient } from './client.ts'
import type { Connection } from './connections.ts'
import { SyncFailure } from './failures.ts'
import { readById } from './group-by-id.ts'
import type { Page, ReceivedGroup } from './messages.ts'
import { discoverLists } from './read.ts'
import { walkGroups } from './walk.ts'
import { Warnings } from './warnings.ts'

/**
 * Requests the first page of groups as a sync would, and describes it, as lines of `name: value`.
 * @throws {SyncFailure} if the directory returns no list of groups.
 */
export async function examine(
  connection: Connection,
  signal: AbortSignal,
  dependencies: ClientDependencies,
): Promise<string[]> {
  const client = createClient(connection, signal, dependencies)
  try {
    const warnings = new Warnings()
    const pages: Page[] = []
    const memory = { membersOnRequest: undefined }
    const { way } = await walkGroups(
      {
        client,
        warnings,
        memory,
        limits: dependencies.limits,
        offer: await discoverLists(client),
        withMembers: connection.members === 'inline',
        progress: () => undefined,
      },
      async (_groups, page) => {
        pages.push(page)
        return false
      },
    )
    const page = pages.at(-1)
    const paging = 'cursor' in way || page?.nextCursor !== undefined ? 'cursor' : pagingByIndex(way)
    const unknownTotal = paging === 'cursor' ? 'not stated' : 'not stated, so a sync deletes nothing'
    return [
      `address: ${connection.url.href}`,
      `pages by: ${paging}`,
      `groups in all: ${page?.total ?? unknownTotal}`,
      `groups on the first page: ${page?.groups.length ?? 0}`,
      ...(await describeMembers(connection, page?.groups ?? [], client, warnings)),
      ...(memory.membersOnRequest === true ? ['members are sent: if they are requested by name'] : []),
      ...warnings.lines().map((line) => `warning: ${line}`),
    ]
  } finally {
    await client.close()
  }
}

function pagingByIndex(way: Readonly<Record<string, string>>): string {
  return 'startIndex' in way ? 'index' : 'nothing, all groups come at once'
}

// Where a sync would read them: a list requested without members shows nothing about them.
async function describeMembers(
  { members: mode }: Connection,
  groups: readonly ReceivedGroup[],
  client: DirectoryClient,
  warnings: Warnings,
): Promise<string[]> {
  if (mode === 'inline') {
    return [`of these with members: ${groups.filter(({ members }) => Array.isArray(members)).length}`]
  }
  const [first] = groups
  if (mode === 'off' || first === undefined) return []
  const group = await readById(client, first.scimId, warnings)
  const known = group instanceof SyncFailure ? 'it cannot be read' : group.members
  return [`members of the first, requested by its id: ${typeof known === 'string' ? known : known.length}`]
}
