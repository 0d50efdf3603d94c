import { afterAll, describe, expect, it } from 'vitest'
import { createKey } from '../../../api/accounts/key-store.ts'
import { openStore, type StoreSettings } from '../../../api/open-store.ts'
import { findConnectionByName, putConnection, removeConnection } from '../../../api/scim/connection-store.ts'
import { FAILURES } from '../../../api/scim/failures.ts'
import { requestJob, takeNextJob } from '../../../api/scim/job-store.ts'
import { startProgram, until } from '../../support/api.ts'
import {
  DIRECTORY_TOKEN,
  gate,
  groupsNamed,
  manyGroups,
  startDirectory,
} from '../../support/faulty-directory.ts'
import { asEnvironment, TestStores } from '../../support/stores.ts'
import { connectionTo, QUICK, startSyncApi, TOKEN_VARIABLE } from '../../support/sync.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const token = DIRECTORY_TOKEN
const startService = (settings: StoreSettings) => startSyncApi(settings, { token })

describe.each(stores.kinds)('a sync job on $name', ({ fresh }) => {
  it('goes from queued over running to succeeded, with all eight keys each time', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1', '2'), { quirk })
    await using service = await startService(await fresh())
    const acme = await service.connect(directory.url)

    const { response, job } = await acme.post()
    expect(response.status).toBe(202)
    expect(response.headers.get('Location')).toBe(`/api/v1/scim/sync-jobs/${job.id}`)
    expect(response.headers.get('Retry-After')).toBe('2')
    const nothing = { synced_groups: null, deleted_groups: null, error_message: null }
    expect(job).toMatchObject({ ...nothing, status: 'queued', started_at: null, finished_at: null })

    await until(() => waiting() > 0)
    expect(await acme.job(job.id)).toMatchObject({
      ...nothing,
      status: 'running',
      started_at: expect.any(String),
      finished_at: null,
    })
    open()
    const end = await acme.end(job.id)
    expect(end).toMatchObject({
      status: 'succeeded',
      synced_groups: 2,
      deleted_groups: 0,
      error_message: null,
    })
    const times = [end.created_at, end.started_at ?? '', end.finished_at ?? '']
    expect(times.toSorted()).toEqual(times)
  })

  it('is the answer to every POST while it is open, and a new one comes after it', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory([], { quirk })
    await using service = await startService(await fresh())
    const acme = await service.connect(directory.url)
    const posts = await Promise.all(Array.from({ length: 10 }, () => acme.post()))
    const ids = new Set(posts.map(({ job }) => job.id))
    expect(ids.size).toBe(1)
    await until(() => waiting() > 0)
    const [id = ''] = ids
    const { response, job } = await acme.post()
    expect([response.status, job.id, response.headers.get('Location')]).toEqual([
      202,
      id,
      `/api/v1/scim/sync-jobs/${id}`,
    ])
    open()
    await acme.end(id)
    expect((await acme.post()).job.id).not.toBe(id)
  })

  it('tells its failure by a fixed sentence, and the log by job id what happened, never the token', async () => {
    await using directory = await startDirectory([], {
      quirk: ({ path }) => (path === '/Groups' ? { status: 404, body: {} } : undefined),
    })
    await using service = await startService(await fresh())
    const acme = await service.connect(directory.url)
    const job = await acme.sync()
    expect(job).toMatchObject({
      status: 'failed',
      synced_groups: null,
      deleted_groups: null,
      error_message: FAILURES.directory_invalid_response,
    })
    const told = service.messages().find((line) => line['job_id'] === job.id)
    expect(told).toMatchObject({ failure: 'directory_invalid_response', level: 'warn' })
    expect(JSON.stringify(told)).toContain('status 404')
    expect(service.lines.join('')).not.toContain(token)
  })

  it('fails when its token is not there, without a request', async () => {
    await using directory = await startDirectory([])
    await using service = await startService(await fresh())
    const acme = await service.connect(directory.url, { token: { kind: 'env', source: 'ANOTHER_VARIABLE' } })
    expect((await acme.sync()).error_message).toBe(FAILURES.token_unavailable)
    expect(directory.asked).toEqual([])
  })

  it('fails when it takes too long', async () => {
    const { quirk } = gate()
    await using directory = await startDirectory([], { quirk })
    await using service = await startSyncApi(await fresh(), { token, sync: { syncMs: 50 } })
    const acme = await service.connect(directory.url)
    expect((await acme.sync()).error_message).toBe(FAILURES.timed_out)
  })

  it.each(['changed', 'removed'])('writes nothing when its connection is %s meanwhile', async (how) => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1'), { quirk })
    await using service = await startService(await fresh())
    const acme = await service.connect(directory.url)
    const { job } = await acme.post()
    await until(() => waiting() > 0)
    if (how === 'removed') await removeConnection(service.store, 'acme')
    else await putConnection(service.store, 'acme', connectionTo(directory.url), new Date(0))
    open()
    expect((await acme.end(job.id)).error_message).toBe(FAILURES.connection_changed)
    expect((await acme.groups()).total_count).toBe(0)
  })

  it('writes nothing when another process took it for dead meanwhile', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1', '2'), { quirk })
    // No beat before the end, which would tell of it sooner.
    const pulse = { beatMs: 3_600_000, stillBeats: 1 }
    await using service = await startSyncApi(await fresh(), { token, sync: { pulse } })
    const acme = await service.connect(directory.url)
    const { job } = await acme.post()
    await until(() => waiting() > 0)
    await service.store.query(
      "UPDATE scim_sync_jobs SET status = 'failed', failure = 'interrupted', finished_at = $1",
      [new Date().toISOString()],
    )
    open()
    const told = await until(() => service.messages().find((line) => line['job_id'] === job.id))
    expect(told).toMatchObject({ failure: 'interrupted' })
    expect((await acme.groups()).total_count).toBe(0)
    expect((await acme.job(job.id)).error_message).toBe(FAILURES.interrupted)
  })

  it('leaves nothing half written when the store fails it', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2'))
    await using service = await startService(await fresh())
    const acme = await service.connect(directory.url)
    await service.store.script('ALTER TABLE scim_members RENAME TO elsewhere')
    const job = await acme.sync()
    expect(job).toMatchObject({ status: 'failed', error_message: FAILURES.internal })
    expect((await acme.groups()).total_count).toBe(0)
    const told = service.messages().find((line) => line['job_id'] === job.id)
    expect(told).toMatchObject({ level: 'error', failure: 'internal' })
    expect(JSON.stringify(told)).toContain('scim_members')
  })
})

describe.each(stores.kinds)('a sync on $name', ({ fresh }) => {
  it('deletes nothing when the directory suddenly returns nothing, and says so', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2'))
    await using service = await startService(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const before = await acme.all()
    directory.groups.length = 0
    expect(await acme.sync()).toMatchObject({ status: 'failed', error_message: FAILURES.directory_empty })
    expect(await acme.all()).toEqual(before)
  })

  it('says so too when the directory returns nothing and tells no total', async () => {
    let isEmpty = false
    await using directory = await startDirectory(groupsNamed('1', '2'), {
      quirk: ({ path }) => (isEmpty && path === '/Groups' ? { body: { Resources: [] } } : undefined),
    })
    await using service = await startService(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    isEmpty = true
    expect((await acme.sync()).error_message).toBe(FAILURES.directory_empty)
    expect((await acme.groups()).total_count).toBe(2)
  })

  it('deletes nothing when too much would go', async () => {
    await using directory = await startDirectory(manyGroups(25))
    await using service = await startService(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    directory.groups.splice(0, 6)
    expect((await acme.sync()).error_message).toBe(FAILURES.deletion_threshold_exceeded)
    expect((await acme.groups()).total_count).toBe(25)
    directory.groups.unshift(...groupsNamed('1'))
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 20, deleted_groups: 5 })
  })

  it('empties no groups when a directory stops supplying members', async () => {
    await using directory = await startDirectory(manyGroups(3))
    await using service = await startService(await fresh())
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

  it('lists no deleted group, and gives one that comes back its former id and its new name', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2'))
    await using service = await startService(await fresh())
    const acme = await service.connect(directory.url)
    await acme.sync()
    const former = (await acme.groups()).data.find((group) => group.external_id === '2')
    directory.groups.pop()
    expect(await acme.sync()).toMatchObject({ synced_groups: 1, deleted_groups: 1 })
    expect((await acme.groups()).data.map((group) => group.external_id)).toEqual(['1'])
    expect((await service.get(`/scim/groups/${former?.id}/members`, acme.key)).status).toBe(404)

    directory.groups.push({ id: '2', displayName: 'Back', members: [{ value: 'eve' }] })
    expect(await acme.sync()).toMatchObject({ synced_groups: 2, deleted_groups: 0 })
    const back = (await acme.groups()).data.find((group) => group.external_id === '2')
    expect(back).toMatchObject({ id: former?.id, created_at: former?.created_at, display_name: 'Back' })
    expect(await acme.all()).toMatchObject({ Back: ['eve'] })
  })

  it('of 10,000 groups and of 5,000 members in one writes all, and then nothing', async () => {
    const staff = Array.from({ length: 5000 }, (_, index) => ({ value: `user-${index}` }))
    const groups = [...manyGroups(10_000), { id: 'staff', displayName: 'Staff', members: staff }]
    await using directory = await startDirectory(groups)
    await using service = await startService(await fresh())
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

describe.each(stores.kinds)('jobs of several accounts on $name', ({ fresh }) => {
  it.each([
    { concurrent: 1, together: 1 },
    { concurrent: 2, together: 2 },
  ])('run side by side up to the limit of $concurrent', async ({ concurrent, together }) => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory([], { quirk })
    await using service = await startSyncApi(await fresh(), {
      token,
      settings: { SCIM_CONCURRENT_SYNCS: String(concurrent) },
    })
    const accounts = [
      await service.connect(directory.url, { account: 'a' }),
      await service.connect(directory.url, { account: 'b' }),
      await service.connect(directory.url, { account: 'c' }),
    ]
    const jobs = await Promise.all(accounts.map((account) => account.post()))
    await until(() => waiting() === together)
    const states = await Promise.all(accounts.map((account, index) => account.job(jobs[index]?.job.id ?? '')))
    expect(states.filter(({ status }) => status === 'running')).toHaveLength(together)
    expect(states.filter(({ status }) => status === 'queued')).toHaveLength(3 - together)
    open()
    for (const [index, account] of accounts.entries()) {
      expect((await account.end(jobs[index]?.job.id ?? '')).status).toBe('succeeded')
    }
  })
})

describe.each(stores.kinds)('jobs and the life of processes on $name', ({ fresh }) => {
  /** A store with an account that is connected to the directory. */
  async function connected(url: string) {
    const settings = await fresh()
    const store = await openStore(settings, new Date())
    const key = await createKey(store, { account: 'acme', kind: 'management', now: new Date() })
    await putConnection(store, 'acme', connectionTo(url), new Date())
    const accountId = (await findConnectionByName(store, 'acme'))?.accountId ?? ''
    return { settings, store, key, accountId }
  }

  it('runs after a start what was queued before', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const { settings, store, key, accountId } = await connected(directory.url)
    const job = await requestJob(store, accountId, new Date())
    await store.close()
    await using service = await startService(settings)
    const acme = service.administrator(key)
    expect(await acme.end(job?.id ?? '')).toMatchObject({ status: 'succeeded', synced_groups: 1 })
  })

  it('ends a job whose process is gone as interrupted, and a new one can begin', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const { settings, store, accountId } = await connected(directory.url)
    await requestJob(store, accountId, new Date())
    const lost = await takeNextJob(store, 'a process that is gone', new Date())
    await store.close()
    await using service = await startService(settings)
    const acme = await service.connect(directory.url)
    expect(await acme.end(lost?.id ?? '')).toMatchObject({
      status: 'failed',
      error_message: FAILURES.interrupted,
    })
    expect((await acme.sync()).status).toBe('succeeded')
  })

  it('lets the job of another living process be, however long it takes', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1'), { quirk })
    const settings = await fresh()
    await using first = await startService(settings)
    const acme = await first.connect(directory.url)
    const { job } = await acme.post()
    await until(() => waiting() > 0)
    // Long enough for the second to take it for dead, were it not for the heartbeat.
    await using second = await startService(settings)
    const heartbeat = async () => {
      const [row] = await second.store.query('SELECT status, heartbeat FROM scim_sync_jobs')
      expect(row?.['status']).toBe('running')
      return Number(row?.['heartbeat'])
    }
    await until(async () => (await heartbeat()) > 2 * QUICK.pulse.stillBeats)
    open()
    expect(await acme.end(job.id)).toMatchObject({ status: 'succeeded' })
  })

  it('interrupts what is running when the service stops, and keeps the groups', async () => {
    const { quirk, waiting } = gate()
    await using good = await startDirectory(groupsNamed('1', '2'))
    await using held = await startDirectory(groupsNamed('3'), { quirk })
    const settings = await fresh()
    let id = ''
    {
      await using service = await startService(settings)
      await (await service.connect(good.url)).sync()
      const acme = await service.connect(held.url)
      id = (await acme.post()).job.id
      await until(() => waiting() > 0)
    }
    await using service = await startService(settings)
    const acme = await service.connect(good.url)
    expect(await acme.job(id)).toMatchObject({ status: 'failed', error_message: FAILURES.interrupted })
    expect(Object.keys(await acme.all()).toSorted()).toEqual(['Group 1', 'Group 2'])
  })

  it('survives kill -9 in the middle of a sync: the old groups stand whole, the job has failed', async () => {
    const { quirk, waiting } = gate()
    await using good = await startDirectory(groupsNamed('1', '2'))
    await using held = await startDirectory(groupsNamed('3'), { quirk })
    const settings = await fresh()
    {
      await using service = await startService(settings)
      await (await service.connect(good.url)).sync()
      await service.connect(held.url)
    }
    const environment = { ...asEnvironment(settings), PORT: '0', [TOKEN_VARIABLE]: token }
    const server = startProgram('server.ts', [], environment)
    const origin = await until(() => /"origin":"([^"]+)"/.exec(server.output.stderr)?.[1])
    const store = await openStore(settings, new Date())
    const key = await createKey(store, { account: 'acme', kind: 'management', now: new Date() })
    await store.close()
    const response = await fetch(`${origin}/api/v1/scim/sync-jobs`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}` },
    })
    const id = response.headers.get('Location')?.split('/').at(-1) ?? ''
    await until(() => waiting() > 0)
    server.child.kill('SIGKILL')
    await server.ended

    await using service = await startService(settings)
    const acme = await service.connect(good.url)
    expect((await acme.job(id)).status).toBe('running')
    expect(await acme.end(id)).toMatchObject({ status: 'failed', error_message: FAILURES.interrupted })
    expect(await acme.all()).toEqual({ 'Group 1': ['user-of-1'], 'Group 2': ['user-of-2'] })
  })

  // Kills spread over the time that the writing takes on any machine.
  it.each([0, 1, 2, 3])(
    'leaves the old groups or the new ones, whenever it is killed (%i)',
    async (quarter) => {
      const old = manyGroups(2000)
      await using directory = await startDirectory(old)
      const settings = await fresh()
      {
        await using service = await startService(settings)
        const acme = await service.connect(directory.url)
        await acme.sync()
      }
      for (const [index, group] of old.entries()) {
        old.splice(index, 1, { ...group, displayName: `New ${group.id}`, members: [{ value: 'new' }] })
      }
      const args = ['sync', '--account', 'acme']
      const run = startProgram('scim/directories.ts', args, {
        ...asEnvironment(settings),
        [TOKEN_VARIABLE]: token,
      })
      // The page past the end: now it compares, and then it writes.
      const lastPages = () => directory.asked.filter(({ query }) => query.get('startIndex') === '2001')
      await until(() => lastPages().length > 1)
      const began = performance.now()
      await until(() => performance.now() - began >= quarter * 15)
      run.child.kill('SIGKILL')
      await run.ended

      const store = await openStore(settings, new Date())
      const rows = await store.query(`
      SELECT g.display_name, m.member_id FROM scim_groups AS g JOIN scim_members AS m ON m.group_id = g.id`)
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

describe.each(stores.kinds)('scheduled syncs on $name', ({ fresh }) => {
  it('start when their time has come, once, and set the next time', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const settings = await fresh()
    const now = new Date('2026-11-20T12:30:00Z')
    const clock = () => now
    await using first = await startSyncApi(settings, { token, clock })
    await using second = await startSyncApi(settings, { token, clock })
    const acme = await first.connect(directory.url, {
      schedule: '0 * * * *',
      // Three times have passed while nobody ran; they come as one.
      nextSyncAt: '2026-11-20T10:00:00.000Z',
    })
    await until(async () => (await acme.groups()).total_count === 1)
    const connection = await findConnectionByName(second.store, 'acme')
    expect(connection?.nextSyncAt).toBe('2026-11-20T13:00:00.000Z')
    const jobs = await second.store.query('SELECT status FROM scim_sync_jobs')
    expect(jobs.map((row) => row['status'])).toEqual(['succeeded'])
  })

  it('wait for their time', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    let now = new Date('2026-11-20T12:30:00Z')
    await using service = await startSyncApi(await fresh(), { token, clock: () => now })
    const acme = await service.connect(directory.url, {
      schedule: '0 * * * *',
      nextSyncAt: '2026-11-20T13:00:00.000Z',
    })
    await service.connect(directory.url, {
      account: 'other',
      schedule: '* * * * *',
      nextSyncAt: now.toISOString(),
    })
    await until(async () => (await service.store.query('SELECT 1 AS x FROM scim_groups')).length > 0)
    expect((await acme.groups()).total_count).toBe(0)
    now = new Date('2026-11-20T13:00:00Z')
    await until(async () => (await acme.groups()).total_count === 1)
  })
})
