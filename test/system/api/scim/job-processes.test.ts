/** CONTRACT 5: sync jobs and the processes that run them: these start, stop, die and run concurrently. */
import { describe, expect, it } from 'vitest'
import type { StoreSettings } from '../../../../api/store/open-store.ts'
import { FAILURES } from '../../../../api/scim/failures.ts'
import { startServer, until } from '../../../support/api.ts'
import { halfRequest } from '../../../support/connections.ts'
import { LONG } from '../../../support/long.ts'
import { startProgram } from '../../../support/processes.ts'
import {
  DIRECTORY_TOKEN,
  gate,
  groupsNamed,
  manyGroups,
  startDirectory,
} from '../../../support/scim/faulty-directory.ts'
import { asEnvironment, stores } from '../../../support/stores.ts'
import { administratorOf, rowsIn, startSyncApi, TOKEN_VARIABLE } from '../../../support/scim/sync.ts'

const DAY_MS = 24 * 3_600_000

const SERVICE = { [TOKEN_VARIABLE]: DIRECTORY_TOKEN }

/** Connects these accounts to the directory; resolves to their keys. */
async function connected(settings: StoreSettings, url: string, names: readonly string[]) {
  await using service = await startSyncApi(settings)
  const accounts = await Promise.all(names.map((account) => service.connect(url, { account })))
  return accounts.map(({ key }) => key)
}

/** The API in its own process, once it listens; it ends well. */
async function startProcess(settings: StoreSettings) {
  const server = await startServer({ ...asEnvironment(settings), ...SERVICE })
  return {
    ...server,
    async [Symbol.asyncDispose]() {
      expect(await server.stop()).toMatchObject({ code: 0 })
    },
  }
}

describe.each(stores.all)('jobs and the life of processes on $name', ({ fresh }) => {
  it('polls for work at the start, at a request and at the end of a job', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1'), { quirk })
    const settings = await fresh()
    const keys = await connected(settings, directory.url, ['acme', 'other'])
    const queue =
      "INSERT INTO scim_sync_jobs (id, account_id, status, created_at) SELECT id, id, 'queued', $1 FROM accounts"
    await rowsIn(settings, queue, [new Date().toISOString()])
    await using service = await startSyncApi(settings, {
      environment: { SCIM_CONCURRENT_SYNCS: '2' },
      sync: { leaseMs: DAY_MS },
    })
    await until(() => waiting() === 2)
    const third = await service.connect(directory.url, { account: 'third' })
    const { job } = await third.post()
    open()
    expect(await third.end(job.id)).toMatchObject({ status: 'succeeded' })
    for (const key of keys) {
      const account = administratorOf(service, key)
      const [first] = (await account.jobs()).data
      expect(await account.end(first?.id ?? '')).toMatchObject({ status: 'succeeded' })
    }
    expect(await third.sync()).toMatchObject({ status: 'succeeded' })
  })

  it('leaves the job of another living process alone, however long it takes', LONG, async () => {
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

  it('interrupts running jobs at once, while requests in flight have their time', async () => {
    const { quirk, waiting } = gate()
    await using held = await startDirectory(groupsNamed('1'), { quirk })
    const limits = { requestMs: DAY_MS, stopMs: DAY_MS }
    await using service = await startSyncApi(await fresh(), { limits })
    const acme = await service.connect(held.url)
    await acme.post()
    await until(() => waiting() > 0)
    const request = await halfRequest(service.origin)
    const closed = service.close()
    await until(async () => {
      const [job] = await service.store.query('SELECT failure FROM scim_sync_jobs')
      return job?.['failure'] === 'interrupted'
    })
    expect(await request.finish()).toMatch(/^HTTP\/1\.1 200 /)
    await closed
  })

  it('survives kill -9 in the middle of a sync: the old groups are whole, the job failed', LONG, async () => {
    const { quirk, waiting } = gate()
    await using good = await startDirectory(groupsNamed('1', '2'))
    await using held = await startDirectory(groupsNamed('3'), { quirk })
    const settings = await fresh()
    {
      await using service = await startSyncApi(settings)
      await (await service.connect(good.url)).sync()
    }
    const [key = ''] = await connected(settings, held.url, ['acme'])
    const server = await startProcess(settings)
    const { id } = (await administratorOf(server, key).post()).job
    await until(() => waiting() > 0)
    await server.stop('SIGKILL')

    await using service = await startSyncApi(settings)
    const acme = await service.connect(good.url)
    expect(await acme.end(id)).toMatchObject({ status: 'failed', error_message: FAILURES.interrupted })
    expect(await acme.all()).toEqual({ 'Group 1': ['user-of-1'], 'Group 2': ['user-of-2'] })
    expect((await acme.sync()).status).toBe('succeeded')
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
        await (await service.connect(directory.url)).sync()
      }
      for (const [index, group] of old.entries()) {
        old.splice(index, 1, { ...group, displayName: `New ${group.id}`, members: [{ value: 'new' }] })
      }
      const args = ['sync', '--account', 'acme']
      const run = startProgram('api/commands/directories.ts', args, {
        ...asEnvironment(settings),
        ...SERVICE,
      })
      // The page past the end: next it compares, and then it writes.
      const lastPages = () => directory.asked.filter(({ query }) => query.get('startIndex') === '2001')
      await until(() => lastPages().length > 1)
      const began = performance.now()
      await until(() => performance.now() - began >= quarter * 15)
      await run.stop('SIGKILL')

      const rows = await rowsIn(
        settings,
        `SELECT substr(g.display_name, 1, 3) || ' ' || substr(m.member_id, 1, 3) AS kind, count(*) AS n
         FROM scim_groups AS g JOIN scim_members AS m ON m.list_id = g.member_list GROUP BY 1`,
      )
      expect(['Gro use', 'New new']).toContain(rows[0]?.['kind'])
      expect(rows.map((row) => row['n'])).toEqual([2000])
    },
  )

  it('run one job per account between two processes, and both show it', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1', '2'), { quirk })
    const settings = await fresh()
    const keys = await connected(settings, directory.url, names)
    await using first = await startProcess(settings)
    await using second = await startProcess(settings)
    const pairs = keys.map((key) => [administratorOf(first, key), administratorOf(second, key)] as const)

    const idsOf = async ([one, other]: (typeof pairs)[number]) => {
      const posts = await Promise.all([one, other, one, other].map((each) => each.post()))
      return [...new Set(posts.map(({ job }) => job.id))]
    }
    const ids = await Promise.all(pairs.map(idsOf))
    expect(ids.map(({ length }) => length)).toEqual(names.map(() => 1))
    await until(() => waiting() === names.length)
    // All are running, so they are returned again.
    expect(await Promise.all(pairs.map(idsOf))).toEqual(ids)
    const started = directory.asked.filter(({ path }) => path === '/Groups')
    expect(started).toHaveLength(names.length)

    open()
    for (const [index, [one, other]] of pairs.entries()) {
      const end = await other.end(ids[index]?.[0] ?? '')
      expect(end).toMatchObject({ status: 'succeeded', synced_groups: 2 })
      expect(await one.job(end.id)).toEqual(end)
      expect(await one.all()).toEqual({ 'Group 1': ['user-of-1'], 'Group 2': ['user-of-2'] })
      expect(await one.groups()).toEqual(await other.groups())
    }
  })
})
