/** CONTRACT 5: how the groups of an account are stored. */
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Store } from '../../../api/store/store.ts'
import { until } from '../../support/api.ts'
import { groupsNamed, manyGroups, startDirectory } from '../../support/scim/faulty-directory.ts'
import { deadJob, directories, startSyncApi } from '../../support/scim/sync.ts'
import { stores } from '../../support/stores.ts'

afterEach(() => vi.restoreAllMocks())

describe.each(stores.kinds)('the groups of an account on $name', ({ fresh, name }) => {
  it('keep a former id: deleted ones that return, and ones that are made anew with their externalId', async () => {
    const staff = { id: 'old', displayName: 'Old', externalId: 'x', members: [{ value: 'ann' }] }
    const third = { id: '3', displayName: 'Third', externalId: 'y' }
    const groups = [{ ...staff, id: 'twin' }, staff, ...groupsNamed('1', '2'), third]
    await using directory = await startDirectory(groups)
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const idOf = async (scimId: string) =>
      (await acme.groups()).data.find(({ external_id }) => external_id === scimId)?.id
    const ids = await Promise.all(['old', '2', '3'].map(idOf))
    const [old, second] = ids
    directory.groups.shift()
    expect(await acme.sync()).toMatchObject({ synced_groups: 4, deleted_groups: 1 })
    directory.groups.splice(0, 4, { ...staff, id: 'new' }, ...groupsNamed('1'))
    expect(await acme.sync()).toMatchObject({ synced_groups: 2, deleted_groups: 2 })
    expect(await idOf('new')).toBe(old)
    expect((await service.get(`/scim/groups/${second}/members`, acme.key)).status).toBe(404)
    directory.groups.push(
      { id: '2', displayName: 'Back', members: [{ value: 'eve' }] },
      { ...third, id: '4' },
    )
    await acme.sync()
    expect(await Promise.all(['new', '2', '4'].map(idOf))).toEqual(ids)
    expect(await acme.all()).toEqual({
      Old: ['ann'],
      'Group 1': ['user-of-1'],
      Back: ['eve'],
      Third: [],
    })
  })

  const countOf = async (store: Store, table: string) =>
    Number((await store.query(`SELECT count(*) AS n FROM ${table}`))[0]?.['n'])

  it('keep no rows of members that no group has any more, and are not written without a change', async () => {
    await using directory = await startDirectory(manyGroups(300))
    const settings = await fresh()
    const environment = { NOTICE_WEBHOOK: 'http://127.0.0.1:1' }
    await using service = await startSyncApi(settings, { environment })
    const acme = await service.connect(directory.url)
    await acme.sync()
    const rows = () => service.store.query('SELECT * FROM scim_groups ORDER BY id')
    const before = await rows()
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 300 })
    expect(await rows()).toEqual(before)
    const grown = directory.groups.map(({ members, ...group }) => {
      return { ...group, members: [{ value: 'new' }, ...(members ?? [])] }
    })
    directory.groups.splice(0, 300, ...grown)
    await acme.sync()
    directory.groups.length = 0
    await acme.sync()
    // A job is over before its unused lists are deleted.
    const counts = async () =>
      await Promise.all(['scim_members', 'scim_member_lists'].map((table) => countOf(service.store, table)))
    await until(async () => (await counts()).join() === '600,300')
    // A process dies amid a sync, the last one of the account, and the store fails when it is asked for the notice.
    await directories(settings, 'remove --account acme')
    const query = service.store.query.bind(service.store)
    vi.spyOn(service.store, 'query').mockImplementation(async (sql, values) => {
      if (sql.includes('scheduled = 1')) throw new Error('no')
      return await query(sql, values)
    })
    await service.store.transaction(async (queries) => {
      await queries.query(deadJob('acme', ''), [new Date().toISOString()])
      await queries.query(
        "INSERT INTO scim_member_lists SELECT 'staged', account_id, id FROM scim_sync_jobs WHERE status = 'running'",
      )
      await queries.query("UPDATE scim_sync_jobs SET scheduled = 1 WHERE status = 'running'")
      await queries.query("INSERT INTO scim_members (list_id, member_id) VALUES ('staged', 'ann')")
    })
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

  it('keep no rows of a process that stalled while another ended its job and erased the directory', async () => {
    const members = Array.from({ length: 2500 }, (_, index) => ({ value: `user-${index}` }))
    let answer: (() => void) | undefined
    const last = { id: '2', displayName: 'Last' }
    await using directory = await startDirectory([{ id: '1', displayName: 'Staff', members }, last], {
      quirk: ({ path }) =>
        path === '/Groups/2'
          ? { send: (response) => void (answer = () => response.end(JSON.stringify(last))) }
          : undefined,
    })
    const settings = await fresh()
    // With a day's lease it is not renewed meanwhile.
    await using service = await startSyncApi(settings, { sync: { leaseMs: 86_400_000 } })
    const acme = await service.connect(directory.url, { members: 'per_group' })
    await acme.post()
    // A part of the list is written, the rest waits for the other group.
    await until(async () => answer !== undefined && (await countOf(service.store, 'scim_members')) > 0)
    await service.store.query("UPDATE scim_sync_jobs SET status = 'failed', failure = 'interrupted'")
    expect(await directories(settings, 'erase --account acme')).toMatchObject({ code: 0 })
    answer?.()
    const entry = await until(() => service.messages().find((line) => line['job_id'] !== undefined))
    expect(await countOf(service.store, 'scim_members')).toBe(0)
    expect(entry).toMatchObject({ failure: 'interrupted' })
  })

  it('are synced by command unless another process does, and once that is dead', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const settings = await fresh()
    await using service = await startSyncApi(settings)
    const acme = await service.connect(directory.url)
    await service.store.query(deadJob('acme', '9999'), [new Date().toISOString()])
    const sync = () => directories(settings, 'sync --account acme')
    expect((await sync()).stderr).toContain('Another process is syncing')
    await service.store.query("UPDATE scim_sync_jobs SET lease_until = ''")
    expect(await sync()).toMatchObject({ code: 0 })
    expect((await acme.groups()).total_count).toBe(1)
  })
})
