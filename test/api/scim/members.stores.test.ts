/** CONTRACT 5: a group or member is removed only when the directory's answer proves it. */
import { setImmediate as endOfTurn } from 'node:timers/promises'
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
import type { Store } from '../../../api/store/store.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())
const { connect } = useAccounts()

const person = (value: string) => ({ value, type: 'User', display: `User ${value}` })

describe('the last member of a group', () => {
  const others = { id: 'a', displayName: 'A', members: [person('ann'), person('bob')] }
  const solo = { id: 'solo', displayName: 'Solo', members: [person('cid')] }

  it.each([
    ['no attribute', {}],
    ['null', { members: null }],
    ['an empty list', { members: [] }],
  ])('leaves it if the directory then sends %s', async (_name, empty) => {
    await using directory = await startDirectory([others, solo])
    const acme = await connect(directory.url)
    await acme.sync()
    directory.groups.splice(1, 1, { id: 'solo', displayName: 'Solo', ...empty })
    const job = await acme.sync()
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 2 })
    expect(await acme.all()).toEqual({ A: ['ann', 'bob'], Solo: [] })
    expect((await acme.changes(job.id)).members_left).toEqual({ count: 1, names: ['Solo: User cid'] })
  })

  it.each([
    ['leaves the only group too, since that had members before', 1, null, 0],
    ['stays if more members would leave than the gate allows', 60, FAILURES.deletion_threshold_exceeded, 60],
  ])('%s', async (_name, before, error_message, after) => {
    const members = Array.from({ length: before }, (_, index) => person(`user-${index}`))
    await using directory = await startDirectory([{ ...solo, members }])
    const acme = await connect(directory.url)
    await acme.sync()
    directory.groups.splice(0, 1, { id: 'solo', displayName: 'Solo' })
    expect((await acme.sync()).error_message).toBe(error_message)
    expect((await acme.groups()).data[0]?.member_count).toBe(after)
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
  const noSingleGroups: Quirk = ({ path }) =>
    path.startsWith('/Groups/') ? { status: 404, body: {} } : undefined
  const more = groupsNamed('51', '52', '53', '54', '55')

  it.each<[string, (groups: DirectoryGroup[]) => void, Quirk | undefined, [number, number, number]]>([
    ['deletes no group that answers by its id', (groups) => groups.push(...more), undefined, [55, 0, 5]],
    ['deletes a group that is answered with 404', (groups) => groups.shift(), undefined, [49, 1, 0]],
    ['deletes nothing if it answers for no group', (groups) => groups.shift(), noSingleGroups, [50, 0, 1]],
  ])('%s, and the job says that it may be capped', async (_name, change, quirk, [synced, deleted, kept]) => {
    const groups = manyGroups(50)
    const list = capped(groups)
    await using directory = await startDirectory(groups, { quirk: (asked) => list(asked) ?? quirk?.(asked) })
    const acme = await connect(directory.url)
    await acme.sync()
    change(groups)
    const job = await acme.sync()
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: synced, deleted_groups: deleted })
    const { warnings } = await acme.changes(job.id)
    expect(warnings.join()).toContain('may be capped')
    if (kept > 0) expect(warnings.join()).toMatch(new RegExp(`${kept} groups? not in the list`))
  })
})

describe.each(stores.kinds)('the groups of an account on $name', ({ fresh, name }) => {
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

  const countOf = async (store: Store, table: string) =>
    Number((await store.query(`SELECT count(*) AS n FROM ${table}`))[0]?.['n'])

  it('keep no rows of members that no group has any more', async () => {
    await using directory = await startDirectory(manyGroups(300))
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const grown = directory.groups.map(({ members, ...group }) => {
      return { ...group, members: [person('new'), ...(members ?? [])] }
    })
    directory.groups.splice(0, 300, ...grown)
    await acme.sync()
    directory.groups.length = 0
    await acme.sync()
    // A job is over before its unused lists are deleted.
    const counts = async () =>
      await Promise.all(['scim_members', 'scim_member_lists'].map((table) => countOf(service.store, table)))
    await until(async () => (await counts()).join() === '600,300')
  })

  // SQLite works on the event loop itself.
  it.runIf(name === 'SQLite')(
    'lose a former list in small steps, between which others are served',
    async () => {
      const members = Array.from({ length: 20_000 }, (_, index) => ({ value: `user-${index}` }))
      await using directory = await startDirectory([{ id: '1', displayName: 'Staff', members }])
      await using service = await startSyncApi(await fresh())
      const acme = await service.connect(directory.url, { gate_percent: 100 })
      await acme.sync()
      directory.groups.splice(0, 1, { id: '1', displayName: 'Staff', members: members.slice(1) })
      await acme.post()
      let largestStep = 0
      for (let before = 0, count = 0; count !== 19_999; before = count) {
        count = await countOf(service.store, 'scim_members')
        largestStep = Math.max(largestStep, before - count)
        await endOfTurn()
      }
      expect(largestStep).toBeGreaterThan(0)
      expect(largestStep).toBeLessThan(5000)
    },
  )

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
