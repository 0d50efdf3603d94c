/** CONTRACT 5: a sync job from its account's view: states, failures, times, and changes. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterAll, describe, expect, it } from 'vitest'
import { findConnectionByName, putConnection, removeConnection } from '../../../api/scim/connections.ts'
import { FAILURES } from '../../../api/scim/failures.ts'
import { until } from '../../support/api.ts'
import { DIRECTORY_TOKEN, gate, groupsNamed, startDirectory } from '../../support/scim/faulty-directory.ts'
import { TestStores } from '../../support/stores.ts'
import { connectionTo, startSyncApi } from '../../support/scim/sync.ts'

/** A time in the past, at which a scheduled sync is due. */
const DUE = '2026-11-20T10:00:00.000Z'

const stores = new TestStores()
afterAll(() => stores.removeAll())

describe.each(stores.kinds)('a sync job on $name', ({ fresh }) => {
  it('goes from queued through running to succeeded, always with all eight keys', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1', '2'), { quirk })
    await using service = await startSyncApi(await fresh())
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
    const { headers } = await service.get(`/scim/sync-jobs/${job.id}`, acme.key)
    expect(headers.get('Retry-After')).toBeNull()
    const times = [end.created_at, end.started_at ?? '', end.finished_at ?? '']
    expect(times.toSorted()).toEqual(times)
  })

  it.each([
    { status: 'succeeded', token: DIRECTORY_TOKEN },
    { status: 'failed', token: 'refused' },
  ])(
    'that has $status did not start before its creation, whatever the clock does',
    async ({ status, token }) => {
      await using directory = await startDirectory(groupsNamed('1'))
      let seconds = 1_800_000_000
      const clock = () => new Date((seconds -= 1) * 1000)
      await using service = await startSyncApi(await fresh(), { clock, token })
      const acme = await service.connect(directory.url)
      const end = await acme.sync()
      expect(end.status).toBe(status)
      expect(new Set([end.started_at, end.finished_at])).toEqual(new Set([end.created_at]))
    },
  )

  it('is returned by every POST while it is open, and then a new one starts', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory([], { quirk })
    await using service = await startSyncApi(await fresh())
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

  it('shows a fixed sentence for its failure; the log has the details by job id, never the token', async () => {
    await using directory = await startDirectory([], {
      quirk: ({ path }) => (path === '/Groups' ? { status: 404, body: {} } : undefined),
    })
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    const job = await acme.sync()
    expect(job).toMatchObject({
      status: 'failed',
      synced_groups: null,
      deleted_groups: null,
      error_message: FAILURES.directory_invalid_response,
    })
    const entry = service.messages().find((line) => line['job_id'] === job.id)
    expect(entry).toMatchObject({ failure: 'directory_invalid_response', level: 'warn' })
    expect(JSON.stringify(entry)).toContain('status 404')
    expect(service.lines.join('')).not.toContain(DIRECTORY_TOKEN)
  })

  it('fails without a request if its token is missing', async () => {
    await using directory = await startDirectory([])
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url, { token_source: 'ANOTHER_VARIABLE' })
    expect((await acme.sync()).error_message).toBe(FAILURES.token_unavailable)
    expect(directory.asked).toEqual([])
  })

  it('fails if it takes too long', async () => {
    const { quirk } = gate()
    await using directory = await startDirectory([], { quirk })
    await using service = await startSyncApi(await fresh(), { sync: { syncMs: 50 } })
    const acme = await service.connect(directory.url)
    expect((await acme.sync()).error_message).toBe(FAILURES.timed_out)
  })

  it.each(['changed', 'removed'])('writes nothing if its connection is %s meanwhile', async (how) => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1'), { quirk })
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    const { job } = await acme.post()
    await until(() => waiting() > 0)
    if (how === 'removed') await removeConnection(service.store, 'acme')
    else await putConnection(service.store, 'acme', connectionTo(directory.url), new Date(0))
    open()
    expect((await acme.end(job.id)).error_message).toBe(FAILURES.connection_changed)
    expect((await acme.groups()).total_count).toBe(0)
  })

  // With a day's lease it is not renewed before the last transaction, otherwise while the directory is read.
  it.each([86_400_000, 10_000])(
    'writes nothing if another process has ended it, lease %i ms',
    async (leaseMs) => {
      const { quirk, open, waiting } = gate()
      await using directory = await startDirectory(groupsNamed('1', '2'), { quirk })
      await using service = await startSyncApi(await fresh(), { sync: { leaseMs } })
      const acme = await service.connect(directory.url)
      const { job } = await acme.post()
      await until(() => waiting() > 0)
      await service.store.query(
        "UPDATE scim_sync_jobs SET status = 'failed', failure = 'interrupted', finished_at = $1",
        [new Date().toISOString()],
      )
      if (leaseMs > 10_000) open()
      const entry = await until(() => service.messages().find((line) => line['job_id'] === job.id))
      expect(entry).toMatchObject({ failure: 'interrupted' })
      expect((await acme.groups()).total_count).toBe(0)
      expect((await acme.job(job.id)).error_message).toBe(FAILURES.interrupted)
      // The process that ended it counted it.
      expect(await (await fetch(`${service.origin}/metrics`)).text()).not.toMatch(/^scim_jobs_total{/m)
    },
  )

  it('leaves nothing half written if the store fails', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2'))
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    await service.store.script('ALTER TABLE scim_groups RENAME TO elsewhere')
    const job = await acme.sync()
    expect(job).toMatchObject({ status: 'failed', error_message: FAILURES.internal })
    await service.store.script('ALTER TABLE elsewhere RENAME TO scim_groups')
    expect((await acme.groups()).total_count).toBe(0)
    const entry = service.messages().find((line) => line['job_id'] === job.id)
    expect(entry).toMatchObject({ level: 'error', failure: 'internal' })
    expect(JSON.stringify(entry)).toContain('scim_groups')
  })
})

describe.each(stores.kinds)('jobs of several accounts on $name', ({ fresh }) => {
  it.each([1, 2])('run concurrently up to the limit of %i', async (concurrent) => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory([], { quirk })
    const settings = { SCIM_CONCURRENT_SYNCS: String(concurrent) }
    await using service = await startSyncApi(await fresh(), { settings })
    const jobs = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => {
        const account = await service.connect(directory.url, { account: name })
        const { id } = (await account.post()).job
        return { now: () => account.job(id), end: () => account.end(id) }
      }),
    )
    await until(() => waiting() === concurrent)
    const states = (await Promise.all(jobs.map(({ now }) => now()))).map(({ status }) => status).toSorted()
    expect(states).toEqual(['queued', 'queued', 'running', 'running'].slice(concurrent - 1, concurrent + 2))
    open()
    for (const { end } of jobs) expect((await end()).status).toBe('succeeded')
  })
})

describe.each(stores.kinds)('GET /scim/sync-jobs/{id}/changes on $name', ({ fresh }) => {
  it('shows what each job did', async () => {
    const [one, two, three] = groupsNamed('1', '2', '3')
    await using directory = await startDirectory([one, two, three].filter((group) => group !== undefined))
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    const none = { count: 0, names: [] }
    const first = await acme.changes((await acme.sync()).id)
    const groups = expect.arrayContaining(['Group 1', 'Group 2', 'Group 3'])
    const members = expect.arrayContaining(['Group 1: user-of-1', 'Group 2: user-of-2', 'Group 3: user-of-3'])
    expect(first).toEqual({
      groups_added: { count: 3, names: groups },
      groups_renamed: none,
      groups_deleted: none,
      members_joined: { count: 3, names: members },
      members_left: none,
      warnings: [],
    })
    const ann = { value: 'ann', display: 'Ann' }
    directory.groups.splice(
      0,
      3,
      { id: '1', displayName: 'New', members: [ann, {}] },
      { id: '2', displayName: 'Group 2' },
    )
    expect(await acme.changes((await acme.sync()).id)).toEqual({
      groups_added: none,
      groups_renamed: { count: 1, names: ['Group 1 -> New'] },
      groups_deleted: { count: 1, names: ['Group 3'] },
      members_joined: { count: 1, names: ['New: Ann'] },
      members_left: { count: 2, names: expect.arrayContaining(['New: user-of-1', 'Group 2: user-of-2']) },
      warnings: [expect.stringContaining('no usable id')],
    })
  })

  it('counts all, names the first hundred, and shows no changes of a job that failed', async () => {
    const people = Array.from({ length: 150 }, (_, index) => ({ value: `user-${index}` }))
    await using directory = await startDirectory([{ id: '1', displayName: 'Staff', members: people }])
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    const { members_joined } = await acme.changes((await acme.sync()).id)
    expect([members_joined.count, members_joined.names.length]).toEqual([150, 100])
    directory.groups.length = 0
    const job = await acme.sync()
    expect(job.status).toBe('failed')
    expect(await acme.changes(job.id)).toMatchObject({
      groups_deleted: { count: 0 },
      members_left: { count: 0 },
    })
  })
})

describe.each(stores.kinds)('GET /scim/sync-jobs on $name', ({ fresh }) => {
  it('lists the jobs of the account, newest first, page by page', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    let seconds = 1_800_000_000
    const clock = () => new Date((seconds += 1) * 1000)
    await using service = await startSyncApi(await fresh(), { clock })
    const acme = await service.connect(directory.url)
    const other = await service.connect(directory.url, { account: 'other' })
    const jobs = [await acme.sync(), await acme.sync(), await acme.sync()].toReversed()
    await other.sync()
    expect(await acme.jobs()).toEqual({ data: jobs, total_count: 3 })
    expect(await acme.jobs('?offset=1&limit=1')).toEqual({ data: jobs.slice(1, 2), total_count: 3 })
    expect((await other.jobs()).total_count).toBe(1)
    expect((await service.get('/scim/sync-jobs?limit=0', acme.key)).status).toBe(400)
    expect((await service.get('/scim/sync-jobs', await service.makeKey('inference'))).status).toBe(401)
  })

  it('shows a scheduled sync that failed', async () => {
    await using directory = await startDirectory([], { quirk: () => ({ status: 401, body: {} }) })
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url, { schedule: '0 0 1 1 *', next_sync_at: DUE })
    const { data } = await until(async () => {
      const jobs = await acme.jobs()
      return jobs.data[0]?.status === 'failed' && jobs
    })
    expect(data[0]?.error_message).toBe(FAILURES.directory_unauthorized)
  })
})

describe.each(stores.kinds)('NOTICE_WEBHOOK on $name', ({ fresh }) => {
  it('gets a notice of the first failed scheduled sync, and of the first that succeeds again', async () => {
    const { origin, received, close } = await startHook()
    let token = 'refused'
    await using directory = await startDirectory(groupsNamed('1'), {
      quirk: ({ path, authorization }) =>
        path === '/Groups' && authorization === `Bearer ${DIRECTORY_TOKEN}` && token === 'refused'
          ? { status: 401, body: {} }
          : undefined,
    })
    await using service = await startSyncApi(await fresh(), { settings: { NOTICE_WEBHOOK: origin } })
    const asked = await service.connect(directory.url, { account: 'asked' })
    await asked.sync()
    const acme = await service.connect(directory.url, { schedule: '0 0 1 1 *', next_sync_at: DUE })
    const scheduled = async (number: number) => {
      await service.store.query('UPDATE scim_connections SET next_sync_at = $1 WHERE schedule IS NOT NULL', [
        DUE,
      ])
      return await until(async () => {
        const { data } = await acme.jobs()
        return data.length === number && data[0]?.finished_at !== null && data[0]
      })
    }
    const failed = await scheduled(1)
    await scheduled(2)
    token = 'accepted'
    const recovered = await scheduled(3)
    await scheduled(4)
    const about = 'The scheduled directory sync of account "acme"'
    await until(() => received.length >= 2)
    expect(received).toEqual([
      {
        event: 'sync_failed',
        message: `${about} failed. ${FAILURES.directory_unauthorized}`,
        account: 'acme',
        job_id: failed.id,
      },
      { event: 'sync_recovered', message: `${about} succeeds again.`, account: 'acme', job_id: recovered.id },
    ])
    close()
  })
})

/** A program that receives notices. */
async function startHook() {
  const received: unknown[] = []
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    received.push(await json(request))
    response.end()
  }
  const server = createServer((request, response) => void take(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  return { origin: `http://127.0.0.1:${port}`, received, close: () => server.close() }
}

describe.each(stores.kinds)('scheduled syncs on $name', ({ fresh }) => {
  it('start once when they are due, and set the next time', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const settings = await fresh()
    const now = new Date('2026-11-20T12:30:00Z')
    const clock = () => now
    await using first = await startSyncApi(settings, { clock })
    await using second = await startSyncApi(settings, { clock })
    const acme = await first.connect(directory.url, {
      schedule: '0 * * * *',
      // Three times were missed; they give one job.
      next_sync_at: '2026-11-20T10:00:00.000Z',
    })
    await until(async () => (await acme.groups()).total_count === 1)
    const connection = await findConnectionByName(second.store, 'acme')
    expect(connection?.next_sync_at).toBe('2026-11-20T13:00:00.000Z')
    const jobs = await second.store.query('SELECT status FROM scim_sync_jobs')
    expect(jobs.map((row) => row['status'])).toEqual(['succeeded'])
  })

  it('are not blocked by an unreadable connection', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const now = new Date('2026-11-20T12:30:00Z')
    await using service = await startSyncApi(await fresh(), { clock: () => now })
    const nextSyncAt = '2026-11-20T14:00:00.000Z'
    await service.connect(directory.url, {
      account: 'broken',
      schedule: '0 * * * *',
      next_sync_at: nextSyncAt,
    })
    const acme = await service.connect(directory.url, { schedule: '0 * * * *', next_sync_at: nextSyncAt })
    await service.store.query(
      "UPDATE scim_connections SET schedule = 'never' WHERE account_id IN (SELECT id FROM accounts WHERE name = 'broken')",
    )
    await service.store.query('UPDATE scim_connections SET next_sync_at = $1', ['2026-11-20T10:00:00.000Z'])
    await until(async () => (await acme.groups()).total_count === 1)
  })

  it('wait for their time', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    let now = new Date('2026-11-20T12:30:00Z')
    await using service = await startSyncApi(await fresh(), { clock: () => now })
    const acme = await service.connect(directory.url, {
      schedule: '0 * * * *',
      next_sync_at: '2026-11-20T13:00:00.000Z',
    })
    await service.connect(directory.url, {
      account: 'other',
      schedule: '* * * * *',
      next_sync_at: now.toISOString(),
    })
    await until(async () => (await service.store.query('SELECT 1 AS x FROM scim_groups')).length > 0)
    expect((await acme.groups()).total_count).toBe(0)
    now = new Date('2026-11-20T13:00:00Z')
    await until(async () => (await acme.groups()).total_count === 1)
  })
})
