/** CONTRACT 4.6 and 5: a sync job from its account's view: states, failures, times, changes, notices and metrics. */
import { describe, expect, it } from 'vitest'
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
import { deadJob, directories, startHook, startSyncApi } from '../../support/scim/sync.ts'
import { stores } from '../../support/stores.ts'

/** A time in the past, at which a scheduled sync is due. */
const DUE = '2026-11-20T10:00:00.000Z'
const HOURLY = { schedule: '0 * * * *', next_sync_at: DUE }
const NOTHING = { synced_groups: null, deleted_groups: null }

/** A clock that moves this much with each look. */
const moving = (seconds: number) => {
  let now = 1_800_000_000
  return () => new Date((now += seconds) * 1000)
}

describe.each(stores.kinds)('a sync job on $name', ({ fresh }) => {
  /** A service with an account whose directory holds its groups back until `open`; its job has begun to read. */
  async function heldSync(groups: DirectoryGroup[], options: Parameters<typeof startSyncApi>[1] = {}) {
    const disposable = new AsyncDisposableStack()
    const { quirk, open, waiting } = gate()
    const { url } = disposable.use(await startDirectory(groups, { quirk }))
    const settings = await fresh()
    const service = disposable.use(await startSyncApi(settings, options))
    const acme = await service.connect(url)
    const posted = await acme.post()
    await until(() => waiting() > 0)
    const close = () => disposable.disposeAsync()
    return { ...posted, settings, service, acme, open, [Symbol.asyncDispose]: close }
  }

  it('goes from queued through running to succeeded, and every POST meanwhile returns it', async () => {
    await using held = await heldSync(groupsNamed('1', '2'))
    const { response, job, acme, service, open } = held
    const location = `/api/v1/scim/sync-jobs/${job.id}`
    const nothing = { ...NOTHING, error_message: null, finished_at: null }
    expect(job).toMatchObject({ ...nothing, status: 'queued', started_at: null })
    const started_at = expect.any(String)
    expect(await acme.job(job.id)).toMatchObject({ ...nothing, status: 'running', started_at })
    const posts = await Promise.all(Array.from({ length: 10 }, () => acme.post()))
    for (const { status, headers } of [response, ...posts.map((post) => post.response)])
      expect([status, headers.get('Location'), headers.get('Retry-After')]).toEqual([202, location, '2'])
    open()
    const end = await acme.end(job.id)
    const success = { synced_groups: 2, deleted_groups: 0, error_message: null }
    expect(end).toMatchObject({ ...success, status: 'succeeded' })
    const { headers } = await service.get(`/scim/sync-jobs/${job.id}`, acme.key)
    expect(headers.get('Retry-After')).toBeNull()
    const times = [end.created_at, end.started_at ?? '', end.finished_at ?? '']
    expect(times.toSorted()).toEqual(times)
    expect((await acme.post()).job.id).not.toBe(job.id)
  })

  it.each([
    { status: 'succeeded', token: DIRECTORY_TOKEN },
    { status: 'failed', token: 'refused' },
  ])('that has $status did not start before its creation, with any clock', async ({ status, token }) => {
    await using directory = await startDirectory(groupsNamed('1'))
    await using service = await startSyncApi(await fresh(), { clock: moving(-1), token })
    const end = await (await service.connect(directory.url)).sync()
    expect(end.status).toBe(status)
    expect(new Set([end.started_at, end.finished_at])).toEqual(new Set([end.created_at]))
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

  const rename = (from: string, to: string) => (store: Store) =>
    store.query(`ALTER TABLE ${from} RENAME TO ${to}`)
  it.each<[string, Failure, string | ReturnType<typeof rename>, ReturnType<typeof rename>?]>([
    ['its connection is changed meanwhile', 'connection_changed', 'set --account acme --gate-groups 5'],
    ['its connection is removed meanwhile', 'connection_changed', 'remove --account acme'],
    ['the store fails', 'internal', rename('scim_groups', 'aside'), rename('aside', 'scim_groups')],
  ])('writes nothing if %s', async (_name, failure, fault, restore) => {
    await using held = await heldSync(groupsNamed('1', '2'))
    const { acme, job, service, settings, open } = held
    await (typeof fault === 'string' ? directories(settings, fault) : fault(service.store))
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
    const environment = { SCIM_CONCURRENT_SYNCS: String(concurrent) }
    await using service = await startSyncApi(await fresh(), { environment })
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

  it('shows what it did: counts, and the first hundred names of each; nothing if it failed', async () => {
    const none = { count: 0, names: [] }
    const people = Array.from({ length: 150 }, (_, index) => ({ value: `user-${index}` }))
    await using directory = await startDirectory([
      ...groupsNamed('1', '3'),
      { id: '2', displayName: 'Staff', members: people },
    ])
    await using service = await startSyncApi(await fresh())
    const acme = await service.connect(directory.url, { gate_members: 200 })
    const first = await acme.changes((await acme.sync()).id)
    const groups = { count: 3, names: expect.arrayContaining(['Group 1', 'Staff', 'Group 3']) }
    const joined = expect.arrayContaining(['Group 1: user-of-1', 'Staff: user-0'])
    expect(first).toMatchObject({ groups_added: groups, members_joined: { count: 152, names: joined } })
    expect(first.members_joined.names).toHaveLength(100)
    const renamed = { id: '1', displayName: 'New', members: [{ value: 'ann', display: 'Ann' }, {}] }
    directory.groups.splice(0, 3, renamed, { id: '2', displayName: 'Staff', members: people.slice(1) })
    expect(await acme.changes((await acme.sync()).id)).toEqual({
      groups_added: none,
      groups_renamed: { count: 1, names: ['Group 1 -> New'] },
      groups_deleted: { count: 1, names: ['Group 3'] },
      members_joined: { count: 1, names: ['New: Ann'] },
      members_left: { count: 2, names: ['New: user-of-1', 'Staff: user-0'] },
      warnings: [expect.stringContaining('no usable id')],
    })
    directory.groups.length = 0
    const job = await acme.sync()
    expect(job.status).toBe('failed')
    expect(await acme.changes(job.id)).toMatchObject({ groups_deleted: none, members_left: none })
  })

  it('is listed for its account, newest first, page by page', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    await using service = await startSyncApi(await fresh(), { clock: moving(1) })
    const acme = await service.connect(directory.url)
    const other = await service.connect(directory.url, { account: 'other' })
    const jobs = [await acme.sync(), await acme.sync(), await acme.sync()].toReversed()
    await other.sync()
    expect(await acme.jobs()).toEqual({ data: jobs, total_count: 3 })
    expect(await acme.jobs('?offset=1&limit=1')).toEqual({ data: jobs.slice(1, 2), total_count: 3 })
    expect((await other.jobs()).total_count).toBe(1)
  })

  it('is counted by its outcome', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    await using service = await startSyncApi(await fresh())
    await (await service.connect(directory.url)).sync()
    await (await service.connect(directory.url, { account: 'closed', token_source: 'ANOTHER' })).sync()
    await service.store.query(deadJob('acme', ''), [DUE])
    // A job is over before it is counted.
    await until(async () => {
      const text = await (await fetch(`${service.origin}/metrics`)).text()
      const lines = ['interrupted', 'succeeded', 'token_unavailable'].map(
        (outcome) => `{outcome="${outcome}"} 1\n`,
      )
      return lines.every((line) => text.includes(`scim_jobs_total${line}`))
    })
  })
})

describe.each(stores.kinds)('scheduled syncs on $name', ({ fresh }) => {
  it('start once when they are due, set the next time, and are not blocked by an unreadable connection', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const settings = await fresh()
    let now = new Date('2026-11-20T12:30:00Z')
    const clock = () => now
    await using first = await startSyncApi(settings, { clock })
    await using second = await startSyncApi(settings, { clock })
    await first.connect(directory.url, { account: 'broken', schedule: 'never', next_sync_at: DUE })
    const next_sync_at = '2026-11-20T13:00:00.000Z'
    const later = await first.connect(directory.url, { account: 'later', ...HOURLY, next_sync_at })
    // Three times were missed; they give one job.
    const acme = await first.connect(directory.url, HOURLY)
    await until(async () => (await acme.groups()).total_count === 1)
    const times = await second.store.query('SELECT next_sync_at FROM scim_connections WHERE schedule = $1', [
      HOURLY.schedule,
    ])
    expect(times.map((row) => row['next_sync_at'])).toEqual([next_sync_at, next_sync_at])
    const jobs = await second.store.query('SELECT status FROM scim_sync_jobs')
    expect(jobs.map((row) => row['status'])).toEqual(['succeeded'])
    expect((await later.groups()).total_count).toBe(0)
    now = new Date(next_sync_at)
    await until(async () => (await later.groups()).total_count === 1)
  })

  it('send NOTICE_WEBHOOK a notice of the first that fails, and of the first that succeeds again', async () => {
    await using hook = await startHook()
    const { received, environment } = hook
    let isRefused = true
    await using directory = await startDirectory(groupsNamed('1'), {
      quirk: ({ path }) => (path === '/Groups' && isRefused ? { status: 401, body: {} } : undefined),
    })
    await using service = await startSyncApi(await fresh(), { environment })
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
    await until(() => received.length >= 2)
    const message = `${about} failed. ${FAILURES.directory_unauthorized}`
    expect(received).toEqual([
      { event: 'sync_failed', message, account: 'acme', job_id: failed.id },
      { event: 'sync_recovered', message: `${about} succeeds again.`, account: 'acme', job_id: recovered.id },
    ])
  })
})
