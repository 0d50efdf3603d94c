/** CONTRACT 5: a group or member is removed only when the directory's answer proves it. */
import { afterAll, describe, expect, it } from 'vitest'
import { FAILURES } from '../../../api/scim/failures.ts'
import { until } from '../../support/api.ts'
import { useAccounts } from '../../support/scim/directory-case.ts'
import {
  groupsNamed,
  listQueries,
  manyGroups,
  ofList,
  startDirectory,
  usualReply,
  type DirectoryGroup,
  type Quirk,
} from '../../support/scim/faulty-directory.ts'
import { startSyncApi, syncByCommand } from '../../support/scim/sync.ts'
import { TestStores } from '../../support/stores.ts'
import { findConnectionByName } from '../../../api/scim/connections.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())
const { connect } = useAccounts()

const person = (value: string) => ({ value, type: 'User', display: `User ${value}` })

describe('the last member of a group', () => {
  it.each([
    ['no attribute', {}],
    ['null', { members: null }],
    ['an empty list', { members: [] }],
  ])('leaves it if the directory then sends %s', async (_name, empty) => {
    const others = { id: 'a', displayName: 'A', members: [person('ann'), person('bob')] }
    const solo = { id: 'solo', displayName: 'Solo', members: [person('cid')] }
    await using directory = await startDirectory([others, solo])
    const acme = await connect(directory.url)
    await acme.sync()
    directory.groups.splice(1, 1, { id: 'solo', displayName: 'Solo', ...empty })
    const job = await acme.sync()
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 2 })
    expect(await acme.all()).toEqual({ A: ['ann', 'bob'], Solo: [] })
    expect((await acme.changes(job.id)).members_left).toEqual({ count: 1, names: ['Solo: User cid'] })
  })

  it('leaves the only group too, since that group had members before', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const acme = await connect(directory.url)
    await acme.sync()
    directory.groups.splice(0, 1, { id: '1', displayName: 'Group 1' })
    await acme.sync()
    expect(await acme.all()).toEqual({ 'Group 1': [] })
  })

  it('stays if more members would leave than the gate allows', async () => {
    const members = Array.from({ length: 60 }, (_, index) => person(`user-${index}`))
    await using directory = await startDirectory([{ id: '1', displayName: 'Staff', members }])
    const acme = await connect(directory.url)
    await acme.sync()
    directory.groups.splice(0, 1, { id: '1', displayName: 'Staff' })
    expect((await acme.sync()).error_message).toBe(FAILURES.deletion_threshold_exceeded)
    expect((await acme.groups()).data[0]?.member_count).toBe(60)
  })
})

/** Sends members only to requests that name the attribute, as Keycloak does. */
const onRequest =
  (groups: readonly DirectoryGroup[]): Quirk =>
  (asked) => {
    if (asked.query.get('attributes')?.includes('members') === true) return undefined
    const bare = groups.map(({ members: _members, ...group }) => group)
    return asked.path.startsWith('/Groups') ? usualReply(bare, asked) : undefined
  }

describe('members that a directory sends on request only', () => {
  it.each(['inline', 'per_group'] as const)('are read: %s', async (mode) => {
    const groups = manyGroups(150)
    await using directory = await startDirectory(groups, { quirk: onRequest(groups) })
    const acme = await connect(directory.url, mode)
    const job = await acme.sync()
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 150 })
    expect((await acme.changes(job.id)).members_joined.count).toBe(150)
    // Asked once in vain, then always by name.
    if (mode === 'inline')
      expect(listQueries(directory).map((query) => query.has('attributes'))).toEqual([false, true, true])
  })

  it('are asked for once, and the job says so if there are none', async () => {
    await using directory = await startDirectory([
      { id: '1', displayName: 'A' },
      { id: '2', displayName: 'B' },
    ])
    const acme = await connect(directory.url)
    const job = await acme.sync()
    expect((await acme.changes(job.id)).warnings).toEqual([expect.stringContaining('no members')])
    expect(listQueries(directory).filter((query) => query.has('attributes'))).toHaveLength(1)
    expect(await acme.all()).toEqual({ A: null, B: null })
  })
})

it('the type of a nested group follows from its address', async () => {
  const members = [
    { value: 'g2', $ref: 'https://a.example/v2/Groups/g2' },
    { value: 'ann', $ref: '../Users/ann' },
  ]
  await using directory = await startDirectory([{ id: '1', displayName: 'A', members }])
  const acme = await connect(directory.url)
  await acme.sync()
  const { data } = await acme.members((await acme.groups()).data[0]?.id ?? '')
  expect(data.map(({ id, type }) => [id, type])).toEqual([
    ['ann', 'User'],
    ['g2', 'Group'],
  ])
})

describe('a list that ignores count', () => {
  /** The newest 50 groups, whatever is requested, as if there were no more. */
  const capped = (groups: readonly DirectoryGroup[]): Quirk =>
    ofList(() => ({ body: { totalResults: Math.min(50, groups.length), Resources: groups.slice(-50) } }))

  it('deletes no group that answers by its id, and the job says that the list may be capped', async () => {
    const groups = manyGroups(50)
    await using directory = await startDirectory(groups, { quirk: capped(groups) })
    const acme = await connect(directory.url)
    await acme.sync()
    groups.push(...groupsNamed('51', '52', '53', '54', '55'))
    const job = await acme.sync()
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 55, deleted_groups: 0 })
    const { warnings } = await acme.changes(job.id)
    expect(warnings.join()).toContain('may be capped')
    expect(warnings.join()).toContain('5 groups not in the list')
  })

  it('deletes a group that is answered with 404', async () => {
    const groups = manyGroups(50)
    await using directory = await startDirectory(groups, { quirk: capped(groups) })
    const acme = await connect(directory.url)
    await acme.sync()
    groups.shift()
    expect(await acme.sync()).toMatchObject({ synced_groups: 49, deleted_groups: 1 })
  })

  it('deletes nothing if the directory answers no request for a single group', async () => {
    const groups = manyGroups(50)
    const list = capped(groups)
    await using directory = await startDirectory(groups, {
      quirk: (asked) =>
        list(asked) ?? (asked.path.startsWith('/Groups/') ? { status: 404, body: {} } : undefined),
    })
    const acme = await connect(directory.url)
    await acme.sync()
    groups.shift()
    expect(await acme.sync()).toMatchObject({ synced_groups: 50, deleted_groups: 0 })
  })
})

describe.each(stores.kinds)('the groups of an account on $name', ({ fresh }) => {
  it('keep a former id: deleted ones that return, and ones that are made anew with their externalId', async () => {
    const staff = { id: 'old', displayName: 'Old', externalId: 'x', members: [person('ann')] }
    await using directory = await startDirectory([staff, ...groupsNamed('1', '2')])
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const idOf = async (scimId: string) =>
      (await acme.groups()).data.find(({ external_id }) => external_id === scimId)?.id
    const [old, second] = [await idOf('old'), await idOf('2')]
    directory.groups.splice(0, 3, { ...staff, id: 'new' }, ...groupsNamed('1'))
    expect(await acme.sync()).toMatchObject({ synced_groups: 2, deleted_groups: 1 })
    expect(await idOf('new')).toBe(old)
    expect((await service.get(`/scim/groups/${second}/members`, acme.key)).status).toBe(404)
    directory.groups.push({ id: '2', displayName: 'Back', members: [person('eve')] })
    await acme.sync()
    expect(await idOf('2')).toBe(second)
    expect(await acme.all()).toEqual({ Old: ['ann'], 'Group 1': ['user-of-1'], Back: ['eve'] })
  })

  it('keep no rows of members that no group has any more', async () => {
    await using directory = await startDirectory(manyGroups(300))
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const changed = directory.groups.map((group) => ({
      ...group,
      members: [person('new'), ...(group.members ?? [])],
    }))
    directory.groups.splice(0, 300, ...changed)
    await acme.sync()
    directory.groups.length = 0
    await acme.sync()
    const count = async (table: string) =>
      (await service.store.query(`SELECT count(*) AS n FROM ${table}`))[0]?.['n']
    // A job is over before its unused lists are deleted.
    await until(
      async () => (await count('scim_members')) === 600 && (await count('scim_member_lists')) === 300,
    )
  })

  it('are written once: a second sync of 3,000 unchanged ones touches no row', async () => {
    await using directory = await startDirectory(manyGroups(3000))
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const rows = () => service.store.query('SELECT * FROM scim_groups ORDER BY id')
    const before = await rows()
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 3000 })
    expect(await rows()).toEqual(before)
  })

  it('are synced by command after the open job of another process, if that is dead', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    await using service = await startSyncApi(await fresh(), { settings: { SCIM_CONCURRENT_SYNCS: '1' } })
    const acme = await service.connect(directory.url)
    const { account_id: accountId = '' } = (await findConnectionByName(service.store, 'acme')) ?? {}
    const time = new Date().toISOString()
    await service.store.query(
      `INSERT INTO scim_sync_jobs (id, account_id, status, created_at, started_at, runner, lease_until)
       VALUES ('00000000-0000-4000-8000-000000000000', $1, 'running', $2, $2, 'a process that is gone', $2)`,
      [accountId, time],
    )
    expect(await syncByCommand(service.store, accountId)).toMatchObject({ status: 'succeeded' })
    expect((await acme.groups()).total_count).toBe(1)
  })
})
