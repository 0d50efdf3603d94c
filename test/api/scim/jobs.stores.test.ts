/** CONTRACT 5: a sync job from its account's view: states, failures, times, and changes. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterAll, describe, expect, it } from 'vitest'
import { findConnectionByName, putConnection, removeConnection } from '../../../api/scim/connections.ts'
import { FAILURES, type Failure } from '../../../api/scim/failures.ts'
import type { Store } from '../../../api/store/store.ts'
import { until } from '../../support/api.ts'
import {
  DIRECTORY_TOKEN,
  gate,
  groupsNamed,
  startDirectory,
  type DirectoryGroup,
} from '../../support/scim/faulty-directory.ts'
import { TestStores } from '../../support/stores.ts'
import { connectionTo, startSyncApi } from '../../support/scim/sync.ts'

/** A time in the past, at which a scheduled sync is due. */
const DUE = '2026-11-20T10:00:00.000Z'
const HOURLY = { schedule: '0 * * * *', next_sync_at: DUE }
const NOTHING = { synced_groups: null, deleted_groups: null }

const stores = new TestStores()
afterAll(() => stores.removeAll())

describe.each(stores.kinds)('a sync job on $name', ({ fresh }) => {
  /** A service with an account whose directory holds its groups back until `open`; its job has begun to read. */
  async function heldSync(groups: DirectoryGroup[], options: Parameters<typeof startSyncApi>[1] = {}) {
    const disposable = new AsyncDisposableStack()
    const { quirk, open, waiting } = gate()
    const { url } = disposable.use(await startDirectory(groups, { quirk }))
    const service = disposable.use(await startSyncApi(await fresh(), options))
    const acme = await service.connect(url)
    const posted = await acme.post()
    await until(() => waiting() > 0)
    const close = () => disposable.disposeAsync()
    return { ...posted, url, service, acme, open, [Symbol.asyncDispose]: close }
  }

  it('goes from queued through running to succeeded, always with all eight keys', async () => {
    await using held = await heldSync(groupsNamed('1', '2'))
    const { response, job, acme, service, open } = held
    expect(response.status).toBe(202)
    expect(response.headers.get('Location')).toBe(`/api/v1/scim/sync-jobs/${job.id}`)
    expect(response.headers.get('Retry-After')).toBe('2')
    const nothing = { ...NOTHING, error_message: null, finished_at: null }
    expect(job).toMatchObject({ ...nothing, status: 'queued', started_at: null })
    expect(await acme.job(job.id)).toMatchObject({
      ...nothing,
      status: 'running',
      started_at: expect.any(String),
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
  ])('that has $status did not start before its creation, with any clock', async ({ status, token }) => {
    await using directory = await startDirectory(groupsNamed('1'))
    let seconds = 1_800_000_000
    const clock = () => new Date((seconds -= 1) * 1000)
    await using service = await startSyncApi(await fresh(), { clock, token })
    const end = await (await service.connect(directory.url)).sync()
    expect(end.status).toBe(status)
    expect(new Set([end.started_at, end.finished_at])).toEqual(new Set([end.created_at]))
  })

  it('is returned by every POST while it is open, and then a new one starts', async () => {
    await using held = await heldSync([])
    const { acme, job, open } = held
    const posts = await Promise.all(Array.from({ length: 10 }, () => acme.post()))
    const location = `/api/v1/scim/sync-jobs/${job.id}`
    const answers = posts.map(({ response }) => [response.status, response.headers.get('Location')].join(' '))
    expect(new Set(answers)).toEqual(new Set([`202 ${location}`]))
    open()
    await acme.end(job.id)
    expect((await acme.post()).job.id).not.toBe(job.id)
  })

  it('shows a fixed sentence for its failure; the log has the details by job id, never the token', async () => {
    await using directory = await startDirectory([], {
      quirk: ({ path }) => (path === '/Groups' ? { status: 404, body: {} } : undefined),
    })
    await using service = await startSyncApi(await fresh())
    const job = await (await service.connect(directory.url)).sync()
    const error_message = FAILURES.directory_invalid_response
    expect(job).toMatchObject({ ...NOTHING, status: 'failed', error_message })
    const entry = service.messages().find((line) => line['job_id'] === job.id)
    expect(entry).toMatchObject({ failure: 'directory_invalid_response', level: 'warn' })
    expect(JSON.stringify(entry)).toContain('status 404')
    expect(service.lines.join('')).not.toContain(DIRECTORY_TOKEN)
  })

  const putAgain = async (store: Store, url: string) =>
    await putConnection(store, 'acme', connectionTo(url), new Date(0))
  const renameTable = async (store: Store) =>
    await store.script('ALTER TABLE scim_groups RENAME TO elsewhere')
  const restoreTable = async (store: Store) =>
    await store.script('ALTER TABLE elsewhere RENAME TO scim_groups')

  it.each<[string, Failure, (store: Store, url: string) => Promise<unknown>, typeof restoreTable?]>([
    ['its connection is changed meanwhile', 'connection_changed', putAgain],
    ['its connection is removed meanwhile', 'connection_changed', (store) => removeConnection(store, 'acme')],
    ['the store fails', 'internal', renameTable, restoreTable],
  ])('writes nothing if %s', async (_name, failure, fault, restore) => {
    await using held = await heldSync(groupsNamed('1', '2'))
    const { acme, job, service, open } = held
    await fault(service.store, held.url)
    open()
    expect((await acme.end(job.id)).error_message).toBe(FAILURES[failure])
    await restore?.(service.store)
    expect((await acme.groups()).total_count).toBe(0)
    const entry = service.messages().find((line) => line['job_id'] === job.id)
    expect(entry).toMatchObject({ level: failure === 'internal' ? 'error' : 'warn', failure })
  })

  it('fails if it takes too long', async () => {
    await using directory = await startDirectory([], { quirk: gate().quirk })
    await using service = await startSyncApi(await fresh(), { sync: { syncMs: 50 } })
    const acme = await service.connect(directory.url)
    expect((await acme.sync()).error_message).toBe(FAILURES.timed_out)
  })

  // With a day's lease it is not renewed before the last transaction, otherwise while the directory is read.
  it.each([86_400_000, 10_000])(
    'writes nothing if another process has ended it, lease %i ms',
    async (leaseMs) => {
      await using held = await heldSync(groupsNamed('1', '2'), { sync: { leaseMs } })
      const { acme, job, service, open } = held
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

  it.each([1, 2])('runs beside others up to the limit of %i', async (concurrent) => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory([], { quirk })
    const settings = { SCIM_CONCURRENT_SYNCS: String(concurrent) }
    await using service = await startSyncApi(await fresh(), { settings })
    const jobs = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => {
        const account = await service.connect(directory.url, { account: name })
        return { account, id: (await account.post()).job.id }
      }),
    )
    await until(() => waiting() === concurrent)
    const states = await Promise.all(jobs.map(async ({ account, id }) => (await account.job(id)).status))
    const expected = ['queued', 'queued', 'running', 'running'].slice(concurrent - 1, concurrent + 2)
    expect(states.toSorted()).toEqual(expected)
    open()
    for (const { account, id } of jobs) expect((await account.end(id)).status).toBe('succeeded')
  })
})

describe.each(stores.kinds)('GET /scim/sync-jobs/{id}/changes on $name', ({ fresh }) => {
  const none = { count: 0, names: [] }

  it('shows what each job did', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2', '3'))
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url)
    const groups = expect.arrayContaining(['Group 1', 'Group 2', 'Group 3'])
    const members = expect.arrayContaining(['Group 1: user-of-1', 'Group 2: user-of-2', 'Group 3: user-of-3'])
    expect(await acme.changes((await acme.sync()).id)).toEqual({
      groups_added: { count: 3, names: groups },
      groups_renamed: none,
      groups_deleted: none,
      members_joined: { count: 3, names: members },
      members_left: none,
      warnings: [],
    })
    const renamed = { id: '1', displayName: 'New', members: [{ value: 'ann', display: 'Ann' }, {}] }
    directory.groups.splice(0, 3, renamed, { id: '2', displayName: 'Group 2' })
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
    expect(await acme.changes(job.id)).toMatchObject({ groups_deleted: none, members_left: none })
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
  return { origin: `http://127.0.0.1:${port}`, received, [Symbol.dispose]: () => server.close() }
}

describe.each(stores.kinds)('scheduled syncs on $name', ({ fresh }) => {
  it('start once when they are due, and set the next time', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const settings = await fresh()
    const clock = () => new Date('2026-11-20T12:30:00Z')
    await using first = await startSyncApi(settings, { clock })
    await using second = await startSyncApi(settings, { clock })
    // Three times were missed; they give one job.
    const acme = await first.connect(directory.url, HOURLY)
    await until(async () => (await acme.groups()).total_count === 1)
    const connection = await findConnectionByName(second.store, 'acme')
    expect(connection?.next_sync_at).toBe('2026-11-20T13:00:00.000Z')
    const jobs = await second.store.query('SELECT status FROM scim_sync_jobs')
    expect(jobs.map((row) => row['status'])).toEqual(['succeeded'])
  })

  it('wait for their time, and are not blocked by an unreadable connection', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    let now = new Date('2026-11-20T12:30:00Z')
    await using service = await startSyncApi(await fresh(), { clock: () => now })
    await service.connect(directory.url, { account: 'broken', schedule: 'never', next_sync_at: DUE })
    const acme = await service.connect(directory.url, { ...HOURLY, next_sync_at: '2026-11-20T13:00:00.000Z' })
    await service.connect(directory.url, { account: 'other', ...HOURLY })
    await until(async () => (await service.store.query('SELECT 1 AS x FROM scim_groups')).length > 0)
    expect((await acme.groups()).total_count).toBe(0)
    now = new Date('2026-11-20T13:00:00Z')
    await until(async () => (await acme.groups()).total_count === 1)
  })

  it('send NOTICE_WEBHOOK a notice of the first that fails, and of the first that succeeds again', async () => {
    using hook = await startHook()
    let isRefused = true
    await using directory = await startDirectory(groupsNamed('1'), {
      quirk: ({ path }) => (path === '/Groups' && isRefused ? { status: 401, body: {} } : undefined),
    })
    await using service = await startSyncApi(await fresh(), { settings: { NOTICE_WEBHOOK: hook.origin } })
    await (await service.connect(directory.url, { account: 'asked' })).sync()
    const acme = await service.connect(directory.url, HOURLY)
    const scheduled = async (number: number) => {
      const setDue = 'UPDATE scim_connections SET next_sync_at = $1 WHERE schedule IS NOT NULL'
      await service.store.query(setDue, [DUE])
      return await until(async () => {
        const { data } = await acme.jobs()
        return data.length === number && data[0]?.finished_at !== null && data[0]
      })
    }
    const failed = await scheduled(1)
    expect(failed?.error_message).toBe(FAILURES.directory_unauthorized)
    await scheduled(2)
    isRefused = false
    const recovered = await scheduled(3)
    await scheduled(4)
    const about = 'The scheduled directory sync of account "acme"'
    await until(() => hook.received.length >= 2)
    const message = `${about} failed. ${FAILURES.directory_unauthorized}`
    expect(hook.received).toEqual([
      { event: 'sync_failed', message, account: 'acme', job_id: failed.id },
      { event: 'sync_recovered', message: `${about} succeeds again.`, account: 'acme', job_id: recovered.id },
    ])
  })
})
