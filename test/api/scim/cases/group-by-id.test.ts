/** CONTRACT 5: requests for single groups: for their members, and before they are deleted. */
import { describe, expect, it } from 'vitest'
import {
  describeDirectories,
  hangUp,
  status,
  useAccounts,
  type DirectoryCase,
} from '../../../support/scim/directory-case.ts'
import {
  manyGroups,
  startDirectory,
  usualReply,
  type DirectoryGroup,
  type Reply,
  ofList,
} from '../../../support/scim/faulty-directory.ts'

const accounts = useAccounts()
const { connect } = accounts

/** Some requests for a group by its id are answered by this. */
const byId = (
  ids: RegExp,
  reply: (id: string) => Reply,
  ends: DirectoryCase['ends'],
  warning?: string,
): DirectoryCase => ({
  groups: manyGroups(30),
  quirk: ({ path }) => {
    const id = path.replace('/Groups/', '')
    return id !== path && ids.test(id) ? reply(id) : undefined
  },
  members: 'per_group',
  ends,
  ...(warning !== undefined && { warning }),
})
const members = [{ value: 'ann' }, { value: '2', type: 'Group' }]
const aList = { totalResults: 1, Resources: [{ id: '1' }] }

describeDirectories(accounts, {
  'fails at one group': byId(/^3$/, () => status(500), 30, 'could not be read'),
  'forbids one group': byId(/^3$/, () => status(403), 30, 'could not be read'),
  'forbids more than a fifth of the groups': byId(/^[1-7]$/, () => status(403), 'directory_unauthorized'),
  'gives users and groups as the members of each group': byId(
    /./,
    (id) => ({ body: { id, displayName: 'x', members } }),
    30,
  ),
  'gives nonsense for one group': byId(
    /^3$/,
    () => ({ body: { id: '3', members: 'x' } }),
    30,
    'could not be read',
  ),
  'gives a list for each group': byId(/./, () => ({ body: aList }), 'directory_invalid_response'),
})

describe('a group that leaves the list', () => {
  const statuses = [404, 410, 400, 401, 403, 405, 408, 429, 500, 501, 503, 302]
  it.each<[string, Reply | undefined]>([
    ...statuses.map((code): [string, Reply] => [String(code), status(code)]),
    ['no answer', hangUp],
    ['a page for people', { send: (response) => response.end('<html></html>') }],
    ['an empty object', { body: {} }],
    ['null', { body: null }],
    ['the group as it was', undefined],
  ])('is deleted if its own request is answered with %s', async (_name, reply) => {
    const all = manyGroups(10)
    let listed: readonly DirectoryGroup[] = all
    await using directory = await startDirectory(all, {
      quirk: (asked) => {
        if (asked.path === '/Groups') return usualReply(listed, asked)
        return asked.path === '/Groups/10' ? reply : undefined
      },
    })
    const account = await connect(directory.url, 'inline')
    await account.sync()
    listed = all.slice(0, 9)
    const job = await account.sync()
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 9, deleted_groups: 1 })
    expect((await account.changes(job.id)).warnings).toEqual([])
  })

  it('stays if the list has a group without a usable id', async () => {
    const all = manyGroups(3)
    const rows: unknown[] = [...all]
    await using directory = await startDirectory(all, {
      quirk: ofList(() => ({ body: { totalResults: rows.length, Resources: rows } })),
    })
    const account = await connect(directory.url, 'inline')
    await account.sync()
    rows.splice(0, 1, { displayName: 'Nameless' })
    expect(await account.sync()).toMatchObject({ status: 'succeeded', synced_groups: 3, deleted_groups: 0 })
  })
})

describe('unreadable members', () => {
  it('leave the stored ones unchanged', async () => {
    const groups = manyGroups(5)
    let forbidden = false
    await using directory = await startDirectory(groups, {
      quirk: ({ path }) => (forbidden && path === '/Groups/3' ? status(403) : undefined),
    })
    const account = await connect(directory.url, 'per_group')
    await account.sync()
    const before = await account.all()
    forbidden = true
    groups.splice(2, 1, { id: '3', displayName: 'Group 3', members: [] })
    expect(await account.sync()).toMatchObject({ status: 'succeeded', synced_groups: 5 })
    expect(await account.all()).toEqual(before)
  })
})
