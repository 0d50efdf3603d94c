import { afterAll, describe, expect, it } from 'vitest'
import { FAILURES } from '../../../../api/scim/failures.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { liveThrough } from '../../../support/scim/scim-life.ts'
import { SCIMMY_TOKEN, startScimmy } from '../../../support/scim/scimmy.ts'
import { TestStores } from '../../../support/stores.ts'
import { startSyncApi } from '../../../support/scim/sync.ts'

const folders = new TemporaryFolders()
const stores = new TestStores()
afterAll(async () => {
  folders.removeAll()
  await stores.removeAll()
})

const startService = () => startSyncApi({ DATA_DIR: folders.make() }, { token: SCIMMY_TOKEN })

describe('a sync with a real SCIM server', () => {
  it('stores the groups with their members, and then only changes', async () => {
    await using directory = await startScimmy(4)
    await using service = await startService()
    const staff = await directory.add('Staff', ['ann', 'bob'])
    const sales = await directory.add('Sales', ['ann'])
    const acme = await service.connect(directory.url)

    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 2, deleted_groups: 0 })
    expect(await acme.all()).toEqual({ Staff: ['ann', 'bob'], Sales: ['ann'] })
    const before = await acme.groups()

    await directory.put(staff, 'All staff', ['bob', 'cid'])
    await directory.remove(sales)
    await directory.add('Legal')
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 2, deleted_groups: 1 })
    expect(await acme.all()).toEqual({ 'All staff': ['bob', 'cid'], Legal: [] })
    const after = await acme.groups()
    const idOf = (groups: typeof before) => groups.data.find((group) => group.external_id === staff)?.id
    expect(idOf(after)).toBe(idOf(before))
  })

  it.each(['inline', 'per_group', 'off'] as const)('reads 250 groups, members %s', async (members) => {
    await using directory = await startScimmy(4)
    await using service = await startService()
    for (let number = 0; number < 250; number += 1) await directory.add(`Group ${number}`, ['ann'])
    const acme = await service.connect(directory.url, { members })
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 250 })
    expect((await acme.groups()).total_count).toBe(250)
    expect(Object.values(await acme.all())).toEqual(Array(100).fill(members === 'off' ? null : ['ann']))
  })

  it('reports a rejected token', async () => {
    await using directory = await startScimmy(4)
    await using service = await startSyncApi({ DATA_DIR: folders.make() }, { token: 'another' })
    const acme = await service.connect(directory.url)
    expect(await acme.sync()).toMatchObject({
      status: 'failed',
      error_message: FAILURES.directory_unauthorized,
    })
  })

  it("deletes nothing if the server's paging breaks", async () => {
    const groups = Array.from({ length: 30 }, (_, index) => `Group ${index}`)
    await using service = await startService()
    await using broken = await startScimmy(5)
    for (const name of groups) await broken.add(name)
    const acme = await service.connect(broken.url)
    expect(await acme.sync()).toMatchObject({
      status: 'failed',
      error_message: FAILURES.directory_incomplete,
    })
    expect((await acme.groups()).total_count).toBe(0)
  })
})

it.each(stores.all)('a directory is synced over its whole lifecycle on $name', async ({ fresh }) => {
  await using directory = await startScimmy(4)
  await liveThrough({ ...directory, user: async (name) => name }, await fresh())
})
