/** Table-driven tests of directories: one sync per case, on a service that a file's cases share. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ConnectionSettings } from '../../../api/scim/connections.ts'
import { FAILURES, type Failure } from '../../../api/scim/failures.ts'
import {
  startDirectory,
  type Asked,
  type DirectoryGroup,
  type Quirk,
  type Reply,
} from './faulty-directory.ts'
import { TemporaryFolders } from '../pipeline/nightly.ts'
import { startSyncApi } from './sync.ts'

type MemberMode = ConnectionSettings['members']

export interface DirectoryCase {
  readonly groups?: DirectoryGroup[]
  readonly quirk?: Quirk
  readonly members?: MemberMode
  /** The groups after the sync, or the cause of its failure. */
  readonly ends: number | Failure
  /** The members of the group "odd". */
  readonly odd?: readonly string[] | null
  readonly warning?: string
}

export const startIndexOf = ({ query }: Asked) => Number(query.get('startIndex') ?? 1)
export const refused: Reply = { status: 400, body: { scimType: 'invalidValue' } }
export const status = (code: number, headers: Readonly<Record<string, string>> = {}): Reply => ({
  status: code,
  headers,
  body: { status: String(code) },
})
export const hangUp: Reply = { send: (response) => response.destroy() }

/** A service for the tests of a file, with a new account for each directory. */
export function useAccounts(options: Parameters<typeof startSyncApi>[1] = {}) {
  const folders = new TemporaryFolders()
  let service: Awaited<ReturnType<typeof startSyncApi>>
  let accounts = 0

  beforeAll(async () => {
    service = await startSyncApi({ DATA_DIR: folders.make() }, options)
  })
  afterAll(async () => {
    await service.close()
    folders.removeAll()
  })

  return {
    get service() {
      return service
    },
    connect: async (url: string, members: MemberMode = 'inline') => {
      accounts += 1
      return await service.connect(url, { account: `account-${accounts}`, members })
    },
  }
}

type Accounts = ReturnType<typeof useAccounts>

/** Makes a test per case, by name. */
export function describeDirectories(
  { connect }: Accounts,
  cases: Readonly<Record<string, DirectoryCase>>,
): void {
  describe.each(Object.entries(cases))(
    'a directory with this: %s',
    (_name, { groups = [], quirk, members = 'inline', ends, odd, warning }) => {
      it(`ends as ${ends}`, async () => {
        await using directory = await startDirectory(groups, quirk === undefined ? {} : { quirk })
        const account = await connect(directory.url, members)
        const job = await account.sync()
        const expected =
          typeof ends === 'number' ? { synced_groups: ends } : { error_message: FAILURES[ends] }
        expect(job).toMatchObject({ deleted_groups: typeof ends === 'number' ? 0 : null, ...expected })
        const { data, total_count } = await account.groups()
        expect(total_count).toBe(typeof ends === 'number' ? ends : 0)
        const group = data.find(({ external_id }) => external_id === 'odd')
        if (odd !== undefined) {
          const found = await account.members(group?.id ?? '')
          expect(found.total_count === null ? null : found.data.map(({ id }) => id)).toEqual(odd)
        }
        const { warnings } = await account.changes(job.id)
        expect(warnings).toEqual(warning === undefined ? [] : [expect.stringContaining(warning)])
      })
    },
  )
}
