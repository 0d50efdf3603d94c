/** CONTRACT 5: sync jobs and the processes that run them: these start, stop, die and run concurrently. */
import { afterAll, describe, expect, it, vi } from 'vitest'
import { createKey } from '../../../../../api/accounts/key-store.ts'
import { openStore } from '../../../../../api/store/open-store.ts'
import { findConnectionByName, putConnection } from '../../../../../api/scim/connections.ts'
import { FAILURES } from '../../../../../api/scim/failures.ts'
import { requestJob, takeJob } from '../../../../../api/scim/job-store.ts'
import { startProgram, startServer, until } from '../../../../support/api.ts'
import { halfRequest } from '../../../../support/connections.ts'
import {
  DIRECTORY_TOKEN,
  gate,
  groupsNamed,
  manyGroups,
  startDirectory,
} from '../../../../support/scim/faulty-directory.ts'
import { asEnvironment, TestStores } from '../../../../support/stores.ts'
import { connectionTo, startSyncApi, TOKEN_VARIABLE } from '../../../../support/scim/sync.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const stores = new TestStores()
afterAll(() => stores.removeAll())

const DAY_MS = 24 * 3_600_000

describe.each(stores.all)('jobs and the life of processes on $name', ({ fresh }) => {
  /** A store with an account that has the directory. */
  async function connected(url: string) {
    const settings = await fresh()
    const store = await openStore(settings, new Date())
    const key = await createKey(store, { account: 'acme', kind: 'management', now: new Date() })
    await putConnection(store, 'acme', connectionTo(url), new Date())
    const accountId = (await findConnectionByName(store, 'acme'))?.account_id ?? ''
    return { settings, store, key, accountId }
  }

  it('polls for work at the start, at a request and at the end of a job', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1'), { quirk })
    const { settings, store, key, accountId } = await connected(directory.url)
    const otherKey = await createKey(store, { account: 'other', kind: 'management', now: new Date() })
    await putConnection(store, 'other', connectionTo(directory.url), new Date())
    const other = (await findConnectionByName(store, 'other'))?.account_id ?? ''
    const queued = [
      await requestJob(store, accountId, { now: new Date() }),
      await requestJob(store, other, { now: new Date() }),
    ]
    await store.close()
    await using service = await startSyncApi(settings, {
      settings: { SCIM_CONCURRENT_SYNCS: '2' },
      sync: { leaseMs: DAY_MS },
    })
    await until(() => waiting() === 2)
    const third = await service.connect(directory.url, { account: 'third' })
    const { job } = await third.post()
    open()
    expect(await third.end(job.id)).toMatchObject({ status: 'succeeded' })
    for (const [index, each] of [key, otherKey].entries()) {
      const administrator = service.administrator(each)
      expect(await administrator.end(queued[index]?.id ?? '')).toMatchObject({ status: 'succeeded' })
    }
    expect(await third.sync()).toMatchObject({ status: 'succeeded' })
  })

  it('ends the job of a dead process as interrupted, and a new one can begin', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const { settings, store, accountId } = await connected(directory.url)
    const lost = await requestJob(store, accountId, { now: new Date() })
    await takeJob(store, { id: lost?.id ?? '' }, { id: 'a process that is gone', leaseMs: 0 }, new Date())
    await store.close()
    await using service = await startSyncApi(settings)
    const acme = await service.connect(directory.url)
    expect(await acme.end(lost?.id ?? '')).toMatchObject({
      status: 'failed',
      error_message: FAILURES.interrupted,
    })
    expect((await acme.sync()).status).toBe('succeeded')
  })

  it('leaves the job of another living process alone, however long it takes', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1'), { quirk })
    const settings = await fresh()
    await using first = await startSyncApi(settings)
    const acme = await first.connect(directory.url)
    const { job } = await acme.post()
    await until(() => waiting() > 0)
    await using second = await startSyncApi(settings)
    const leaseOf = async () => {
      const [row] = await second.store.query('SELECT status, lease_until FROM scim_sync_jobs')
      expect(row?.['status']).toBe('running')
      return String(row?.['lease_until'])
    }
    const before = await leaseOf()
    // The first lease is over, but it was renewed.
    await until(async () => (await leaseOf()) > before && new Date().toISOString() > before)
    open()
    expect(await acme.end(job.id)).toMatchObject({ status: 'succeeded' })
  })

  it('interrupts running jobs when the service stops, and keeps the groups', async () => {
    const { quirk, waiting } = gate()
    await using good = await startDirectory(groupsNamed('1', '2'))
    await using held = await startDirectory(groupsNamed('3'), { quirk })
    const settings = await fresh()
    let id = ''
    {
      await using service = await startSyncApi(settings)
      await (await service.connect(good.url)).sync()
      const acme = await service.connect(held.url)
      id = (await acme.post()).job.id
      await until(() => waiting() > 0)
    }
    await using service = await startSyncApi(settings)
    const acme = await service.connect(good.url)
    expect(await acme.job(id)).toMatchObject({ status: 'failed', error_message: FAILURES.interrupted })
    expect(Object.keys(await acme.all()).toSorted()).toEqual(['Group 1', 'Group 2'])
  })

  it('interrupts running jobs at once, while requests in flight have their time', async () => {
    const { quirk, waiting } = gate()
    await using held = await startDirectory(groupsNamed('1'), { quirk })
    const limits = { headersMs: DAY_MS, requestMs: DAY_MS, stopMs: DAY_MS }
    await using service = await startSyncApi(await fresh(), { limits })
    const acme = await service.connect(held.url)
    await acme.post()
    await until(() => waiting() > 0)
    const request = await halfRequest(service.origin)
    const closed = service.close()
    await until(async () => {
      const [job] = await service.store.query('SELECT status FROM scim_sync_jobs')
      return job?.['status'] === 'failed'
    })
    expect(await request.finish()).toMatch(/^HTTP\/1\.1 200 /)
    await closed
  })

  it('survives kill -9 in the middle of a sync: the old groups are complete, the job has failed', async () => {
    const { quirk, waiting } = gate()
    await using good = await startDirectory(groupsNamed('1', '2'))
    await using held = await startDirectory(groupsNamed('3'), { quirk })
    const settings = await fresh()
    {
      await using service = await startSyncApi(settings)
      await (await service.connect(good.url)).sync()
      await service.connect(held.url)
    }
    const server = await startServer({ ...asEnvironment(settings), [TOKEN_VARIABLE]: DIRECTORY_TOKEN })
    const store = await openStore(settings, new Date())
    const key = await createKey(store, { account: 'acme', kind: 'management', now: new Date() })
    await store.close()
    const response = await fetch(`${server.origin}/api/v1/scim/sync-jobs`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}` },
    })
    const id = response.headers.get('Location')?.split('/').at(-1) ?? ''
    await until(() => waiting() > 0)
    server.child.kill('SIGKILL')
    await server.ended

    await using service = await startSyncApi(settings)
    const acme = await service.connect(good.url)
    expect(await acme.end(id)).toMatchObject({ status: 'failed', error_message: FAILURES.interrupted })
    expect(await acme.all()).toEqual({ 'Group 1': ['user-of-1'], 'Group 2': ['user-of-2'] })
  })

  // Kills spread over the time of the writing on any machine.
  it.each([0, 1, 2, 3])(
    'leaves either the old or the new groups, whenever it is killed (%i)',
    async (quarter) => {
      const old = manyGroups(2000)
      await using directory = await startDirectory(old)
      const settings = await fresh()
      {
        await using service = await startSyncApi(settings)
        const acme = await service.connect(directory.url)
        await acme.sync()
      }
      for (const [index, group] of old.entries()) {
        old.splice(index, 1, { ...group, displayName: `New ${group.id}`, members: [{ value: 'new' }] })
      }
      const args = ['sync', '--account', 'acme']
      const run = startProgram('commands/directories.ts', args, {
        ...asEnvironment(settings),
        [TOKEN_VARIABLE]: DIRECTORY_TOKEN,
      })
      // The page past the end: next it compares, and then it writes.
      const lastPages = () => directory.asked.filter(({ query }) => query.get('startIndex') === '2001')
      await until(() => lastPages().length > 1)
      const began = performance.now()
      await until(() => performance.now() - began >= quarter * 15)
      run.child.kill('SIGKILL')
      await run.ended

      const store = await openStore(settings, new Date())
      const rows = await store.query(`
      SELECT g.display_name, m.member_id FROM scim_groups AS g JOIN scim_members AS m ON m.list_id = g.member_list`)
      await store.close()
      expect(rows).toHaveLength(2000)
      const words = rows.map((row) =>
        `${String(row['display_name'])} ${String(row['member_id'])}`.split(/[ -]/),
      )
      const kinds = new Set(words.map(([group, , member]) => `${group} ${member}`))
      expect(['Group user', 'New new']).toContain([...kinds].join(', '))
    },
  )
})
