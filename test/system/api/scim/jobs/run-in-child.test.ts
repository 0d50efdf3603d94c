/** A sync in a child process, as the service runs it. */
import { afterAll, describe, expect, it } from 'vitest'
import { FAILURES } from '../../../../../api/scim/failures.ts'
import { runInChild } from '../../../../../api/scim/jobs/run-in-child.ts'
import { until } from '../../../../support/api.ts'
import {
  DIRECTORY_TOKEN,
  gate,
  groupsNamed,
  startDirectory,
  type Reply,
} from '../../../../support/scim/faulty-directory.ts'
import { TestStores } from '../../../../support/stores.ts'
import { startSyncApi, TOKEN_VARIABLE } from '../../../../support/scim/sync.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

/** Enough for a sync of a small directory, but not for a reply of half a million tags. */
const MEMORY_MIB = 64

describe.each(stores.all)('a sync in a child process on $name', ({ fresh }) => {
  async function start(settings: Readonly<Record<string, string>> = {}) {
    const store = await fresh()
    const environment = { ...process.env, [TOKEN_VARIABLE]: DIRECTORY_TOKEN }
    const runSync = runInChild({ store, environment, memoryMib: MEMORY_MIB })
    return await startSyncApi(store, { sync: { runSync }, settings })
  }

  it('stores the groups, counts its requests, and logs its warnings', async () => {
    const groups = [
      ...groupsNamed('1'),
      { id: '2', displayName: 'Odd', members: [{ value: '' }, { value: 'ann' }] },
    ]
    await using directory = await startDirectory(groups)
    await using service = await start()
    const acme = await service.connect(directory.url)
    const job = await acme.sync()
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 2 })
    expect(await acme.all()).toEqual({ 'Group 1': ['user-of-1'], Odd: ['ann'] })
    const line = await until(() => service.messages().find(({ job_id }) => job_id === job.id))
    expect(line).toMatchObject({ level: 'warn', warnings: [expect.stringContaining('no usable id')] })
    const metrics = await (await fetch(`${service.origin}/metrics`)).text()
    expect(metrics).toContain('scim_directory_requests_total{outcome="answer"} 2')
  })

  it('fails as too large if its memory runs out, and the service goes on', async () => {
    // No two of these objects are alike, so that each takes hundreds of bytes.
    const tags = Array.from({ length: 500_000 }, (_, index) => ({ [`tag-${index}`]: index / 3 }))
    const words = JSON.stringify({ totalResults: 1, Resources: [{ id: '1', tags }] })
    await using directory = await startDirectory([], {
      quirk: ({ path }) => (path === '/Groups' ? { send: (response) => response.end(words) } : undefined),
    })
    await using service = await start()
    const acme = await service.connect(directory.url)
    expect((await acme.sync()).error_message).toBe(FAILURES.directory_too_large)
    expect((await fetch(`${service.origin}/healthz`)).status).toBe(200)
  })

  it('fails as it would in the service itself', async () => {
    await using directory = await startDirectory([], { quirk: () => ({ status: 401, body: {} }) })
    await using service = await start()
    const acme = await service.connect(directory.url)
    expect((await acme.sync()).error_message).toBe(FAILURES.directory_unauthorized)
  })

  it('is interrupted with the service', async () => {
    const { quirk, waiting } = gate()
    await using directory = await startDirectory([], { quirk })
    const service = await start()
    const acme = await service.connect(directory.url)
    const { job } = await acme.post()
    await until(() => waiting() > 0)
    await service.close()
    expect(service.messages().find(({ job_id }) => job_id === job.id)).toMatchObject({
      failure: 'interrupted',
    })
  })

  it('gives its slot to another account while its directory makes it wait', async () => {
    const slowDown: Reply = { status: 429, headers: { 'Retry-After': '100' }, body: {} }
    await using slow = await startDirectory([], { quirk: () => slowDown })
    await using quick = await startDirectory(groupsNamed('1'))
    await using service = await start({ SCIM_CONCURRENT_SYNCS: '1' })
    const waiting = await service.connect(slow.url, { account: 'waiting' })
    const { job } = await waiting.post()
    await until(() => slow.asked.some(({ path }) => path === '/Groups'))
    const other = await service.connect(quick.url, { account: 'other' })
    expect(await other.sync()).toMatchObject({ status: 'succeeded', synced_groups: 1 })
    expect((await waiting.job(job.id)).status).toBe('running')
  })
})
