/** What a sync writes and deletes, and when it changes nothing. */
import { afterAll, describe, expect, it } from 'vitest'
import { FAILURES } from '../../../../api/scim/failures.ts'
import {
  groupsNamed,
  manyGroups,
  startDirectory,
  usualReply,
  type DirectoryGroup,
} from '../../../support/scim/faulty-directory.ts'
import { ofList } from '../../../support/scim/pull.ts'
import { TestStores } from '../../../support/stores.ts'
import { startSyncApi } from '../../../support/scim/sync.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

describe.each(stores.kinds)('a sync on $name', ({ fresh }) => {
  it('deletes nothing and fails if the directory suddenly returns nothing', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2'))
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const before = await acme.all()
    directory.groups.length = 0
    expect(await acme.sync()).toMatchObject({ status: 'failed', error_message: FAILURES.directory_empty })
    expect(await acme.all()).toEqual(before)
  })

  it('fails likewise if the directory returns nothing and no total', async () => {
    let isEmpty = false
    await using directory = await startDirectory(groupsNamed('1', '2'), {
      quirk: ({ path }) => (isEmpty && path === '/Groups' ? { body: { Resources: [] } } : undefined),
    })
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    isEmpty = true
    expect((await acme.sync()).error_message).toBe(FAILURES.directory_empty)
    expect((await acme.groups()).total_count).toBe(2)
  })

  it('deletes nothing if too much would be removed', async () => {
    await using directory = await startDirectory(manyGroups(25))
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    directory.groups.splice(0, 6)
    expect((await acme.sync()).error_message).toBe(FAILURES.deletion_threshold_exceeded)
    expect((await acme.groups()).total_count).toBe(25)
    directory.groups.unshift(...groupsNamed('1'))
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 20, deleted_groups: 5 })
  })

  it('counts replaced members as removed', async () => {
    const people = (word: string) =>
      Array.from({ length: 200 }, (_, index) => ({ value: `${word}-${index}` }))
    const [old, anew] = [people('old'), people('new')]
    const staff = { id: '1', displayName: 'Staff', members: old }
    await using directory = await startDirectory([staff])
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const exchange = async (count: number) => {
      directory.groups.splice(0, 1, { ...staff, members: [...anew.slice(0, count), ...old.slice(count)] })
      return await acme.sync()
    }
    expect((await exchange(200)).error_message).toBe(FAILURES.deletion_threshold_exceeded)
    expect((await exchange(51)).error_message).toBe(FAILURES.deletion_threshold_exceeded)
    expect((await acme.all())['Staff']).not.toContain('new-0')
    expect((await exchange(50)).status).toBe('succeeded')
    expect((await acme.all())['Staff']).toContain('new-0')
  })

  it('measures removed members against the groups that stay, however large a removed group is', async () => {
    const people = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ value: `user-${index}` }))
    const staff = { id: 'staff', displayName: 'Staff', members: people(60) }
    const large = { id: 'all', displayName: 'All', members: people(1000) }
    await using directory = await startDirectory([staff, large])
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    directory.groups.splice(0, 2, { ...staff, members: people(1) })
    expect((await acme.sync()).error_message).toBe(FAILURES.deletion_threshold_exceeded)
    expect((await acme.all())['Staff']).toHaveLength(60)
  })

  it('empties no groups if a directory stops supplying members', async () => {
    await using directory = await startDirectory(manyGroups(3))
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const before = await acme.all()
    const bare = directory.groups.map(({ id, displayName }) => ({ id, displayName }))
    directory.groups.splice(0, 3, ...bare)
    expect((await acme.sync()).status).toBe('succeeded')
    expect(await acme.all()).toEqual(before)
    directory.groups.splice(0, 3, ...bare.map((group) => ({ ...group, members: [] })))
    expect((await acme.sync()).status).toBe('succeeded')
    expect(await acme.all()).toEqual(before)
  })

  it('lists no deleted group, and restores one under its former id and its new name', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2'))
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const former = (await acme.groups()).data.find((group) => group.external_id === '2')
    directory.groups.pop()
    expect(await acme.sync()).toMatchObject({ synced_groups: 1, deleted_groups: 1 })
    const { data, total_count } = await acme.groups()
    expect(data.map((group) => group.external_id)).toEqual(['1'])
    expect(total_count).toBe(1)
    expect((await service.get(`/scim/groups/${former?.id}/members`, acme.key)).status).toBe(404)

    directory.groups.push({ id: '2', displayName: 'Back', members: [{ value: 'eve' }] })
    expect(await acme.sync()).toMatchObject({ synced_groups: 2, deleted_groups: 0 })
    const back = (await acme.groups()).data.find((group) => group.external_id === '2')
    expect(back).toMatchObject({ id: former?.id, created_at: former?.created_at, display_name: 'Back' })
    expect(await acme.all()).toMatchObject({ Back: ['eve'] })
  })

  it('keeps the id of an existing group, whatever group has the same externalId', async () => {
    const group = { id: 'old', displayName: 'Old', externalId: 'x', members: [{ value: 'ann' }] }
    const other = { id: 'new', displayName: 'New', externalId: 'x', members: [{ value: 'eve' }] }
    let listed: DirectoryGroup[] = [group]
    await using directory = await startDirectory([group], {
      quirk: ofList((asked) => usualReply(listed, asked)),
    })
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const [former] = (await acme.groups()).data

    directory.groups.push(other)
    listed = [other]
    expect(await acme.sync()).toMatchObject({ synced_groups: 1, deleted_groups: 1 })
    expect(await acme.all()).toEqual({ New: ['eve'] })
    expect((await acme.groups()).data[0]?.id).not.toBe(former?.id)

    listed = [group, other]
    expect(await acme.sync()).toMatchObject({ synced_groups: 2, deleted_groups: 0 })
    expect((await acme.groups()).data).toContainEqual({ ...former, updated_at: expect.any(String) })
  })

  it('gives the id of a deleted group to the one recreated in its place', async () => {
    const group = { id: 'old', displayName: 'Old', externalId: 'x', members: [{ value: 'ann' }] }
    await using directory = await startDirectory([group])
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const [former] = (await acme.groups()).data
    directory.groups.splice(0, 1, { ...group, id: 'new' })
    expect(await acme.sync()).toMatchObject({ synced_groups: 1, deleted_groups: 0 })
    expect((await acme.groups()).data).toMatchObject([{ id: former?.id, external_id: 'new' }])
  })

  it('restores a large group with any members, since a deleted group has none to remove', async () => {
    const people = (word: string) => Array.from({ length: 60 }, (_, index) => ({ value: `${word}-${index}` }))
    const staff = { id: 'staff', displayName: 'Staff' }
    await using directory = await startDirectory([...groupsNamed('1'), { ...staff, members: people('old') }])
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    directory.groups.pop()
    expect((await acme.sync()).deleted_groups).toBe(1)
    directory.groups.push({ ...staff, members: people('new') })
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 2 })
  })

  it('writes the new name and type of a member', async () => {
    await using directory = await startDirectory([])
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    const sync = async (member: { type: string; display: string }) => {
      directory.groups.splice(0, 1, { id: '1', displayName: 'A', members: [{ value: 'ann', ...member }] })
      await acme.sync()
      return await service.store.query('SELECT type, display_name FROM scim_members')
    }
    expect(await sync({ type: 'User', display: 'Ann' })).toEqual([{ type: 'User', display_name: 'Ann' }])
    expect(await sync({ type: 'User', display: 'Anna' })).toEqual([{ type: 'User', display_name: 'Anna' }])
    expect(await sync({ type: 'Bot', display: 'Anna' })).toEqual([{ type: 'Bot', display_name: 'Anna' }])
  })

  it('of 10,000 groups and of 5,000 members in one writes all, and then nothing', async () => {
    const staff = Array.from({ length: 5000 }, (_, index) => ({ value: `user-${index}` }))
    const groups = [...manyGroups(10_000), { id: 'staff', displayName: 'Staff', members: staff }]
    await using directory = await startDirectory(groups)
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 10_001 })
    const memberships = async () =>
      (await service.store.query('SELECT count(*) AS n FROM scim_members'))[0]?.['n']
    expect(await memberships()).toBe(15_000)

    const rows = () => service.store.query('SELECT * FROM scim_groups ORDER BY id')
    const before = await rows()
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 10_001, deleted_groups: 0 })
    expect(await rows()).toEqual(before)

    groups.splice(10_000, 1, {
      id: 'staff',
      displayName: 'Staff',
      members: [...staff.slice(1), { value: 'new' }],
    })
    expect((await acme.sync()).status).toBe('succeeded')
    expect(await memberships()).toBe(15_000)
    const changed = (await rows()).filter((row, index) => row['updated_at'] !== before[index]?.['updated_at'])
    expect(changed.map((row) => row['scim_id'])).toEqual(['staff'])
  })
})
