/** CONTRACT 5: requests for single groups: for their members, and before they are deleted. */
import { describe, expect, it } from 'vitest'
import {
  describeDirectories,
  hangUp,
  refused,
  status,
  useAccounts,
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

describeDirectories(accounts, {
  'fails at one group': {
    groups: manyGroups(5),
    quirk: ({ path }) => (path === '/Groups/3' ? status(500) : undefined),
    members: 'per_group',
    ends: 5,
    warning: 'could not be read',
  },
  'forbids one group': {
    groups: manyGroups(5),
    quirk: ({ path }) => (path === '/Groups/3' ? status(403) : undefined),
    members: 'per_group',
    ends: 5,
    warning: 'could not be read',
  },
  'forbids more than a fifth of the groups': {
    groups: manyGroups(30),
    quirk: ({ path }) => (/^\/Groups\/[1-7]$/.test(path) ? status(403) : undefined),
    members: 'per_group',
    ends: 'directory_unauthorized',
  },
  'gives users and groups as the members of each group': {
    groups: manyGroups(5),
    quirk: ({ path }) =>
      path.startsWith('/Groups/')
        ? {
            body: {
              id: path.slice(8),
              displayName: 'x',
              members: [{ value: 'ann' }, { value: '2', type: 'Group' }],
            },
          }
        : undefined,
    members: 'per_group',
    ends: 5,
  },
  'gives nonsense for one group': {
    groups: manyGroups(5),
    quirk: ({ path }) => (path === '/Groups/3' ? { body: { id: '3', members: 'x' } } : undefined),
    members: 'per_group',
    ends: 5,
    warning: 'could not be read',
  },
  'gives a list for each group': {
    groups: manyGroups(5),
    quirk: ({ path }) =>
      path.startsWith('/Groups/') ? { body: { totalResults: 1, Resources: [{ id: '1' }] } } : undefined,
    members: 'per_group',
    ends: 'directory_invalid_response',
  },
})

describe('a group that leaves the list', () => {
  it.each<[string, Reply | 'there']>([
    ['404', status(404)],
    ['410', status(410)],
    ['400', refused],
    ['401', status(401)],
    ['403', status(403)],
    ['405', status(405)],
    ['408', status(408)],
    ['429', status(429)],
    ['500', status(500)],
    ['501', status(501)],
    ['503', status(503)],
    ['302', status(302)],
    ['no answer', hangUp],
    ['a page for people', { send: (response) => response.end('<html></html>') }],
    ['an empty object', { body: {} }],
    ['null', { body: null }],
    ['the group as it was', 'there'],
  ])('is deleted if its own request is answered with %s', async (_name, reply) => {
    const all = manyGroups(10)
    let listed: readonly DirectoryGroup[] = all
    await using directory = await startDirectory(all, {
      quirk: (asked) => {
        if (asked.path === '/Groups') return usualReply(listed, asked)
        return asked.path === '/Groups/10' && reply !== 'there' ? reply : undefined
      },
    })
    const account = await connect(directory.url, 'inline')
    await account.sync()
    listed = all.slice(0, 9)
    const job = await account.sync()
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 9, deleted_groups: 1 })
    const { warnings } = await account.changes(job.id)
    expect(warnings).toEqual([])
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
