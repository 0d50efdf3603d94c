/** CONTRACT 2, 4.5, 5 and 10: what is stored is whole and on the disk, whoever writes into the store meanwhile. */
import { readlinkSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { basename } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { keys } from '../../../api/commands/keys.ts'
import { openStore, type StoreSettings } from '../../../api/store/open-store.ts'
import type { Queries, Store } from '../../../api/store/store.ts'
import { startApi, UNKNOWN_KEY } from '../../support/api.ts'
import { oneApp, publishSnapshot } from '../../support/pipeline/snapshot.ts'
import { runCommandLine } from '../../support/processes.ts'
import { asEnvironment, stores } from '../../support/stores.ts'

afterEach(() => vi.restoreAllMocks())

/** A store with a table that counts. */
async function openCounter(settings: StoreSettings) {
  const store = await openStore(settings)
  await store.query('CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, n BIGINT NOT NULL)')
  await store.query("INSERT INTO counter VALUES ('a', 0), ('b', 0) ON CONFLICT DO NOTHING")
  const value = async (name = 'a') =>
    (await store.query('SELECT n FROM counter WHERE name = $1', [name]))[0]?.['n']
  return { ...store, value }
}

/** Begins a transaction with this work, which lasts until the test ends it or makes it fail. */
async function beginTransaction(store: Store, work: (queries: Queries) => Promise<unknown>) {
  const begun = Promise.withResolvers<void>()
  const lasting = Promise.withResolvers<void>()
  const ended = store.transaction(async (queries) => {
    await work(queries)
    begun.resolve()
    await lasting.promise
  })
  await Promise.race([begun.promise, ended])
  return { ended, end: lasting.resolve, fail: lasting.reject }
}

describe.each(stores.kinds)('a transaction on $name', ({ fresh, name }) => {
  it('that fails is rolled back, and no query of others with it', async () => {
    await using counter = await openCounter(await fresh())
    const set = "UPDATE counter SET n = 5 WHERE name = 'a'"
    const failing = await beginTransaction(counter, (queries) => queries.query(set))
    const other = counter.query("UPDATE counter SET n = 7 WHERE name = 'b'")
    failing.fail(new Error('no'))
    await expect(failing.ended).rejects.toThrow('no')
    await other
    expect([await counter.value('a'), await counter.value('b')]).toEqual([0, 7])
  })

  it('that runs is waited for by the end of the store', async () => {
    const settings = await fresh()
    const store = await openCounter(settings)
    const running = await beginTransaction(store, (queries) => queries.query('UPDATE counter SET n = 9'))
    const closed = store.close()
    running.end()
    await Promise.all([running.ended, closed])
    await using counter = await openCounter(settings)
    expect(await counter.value()).toBe(9)
  })

  it('of another process delays no request and command that only reads, and counted requests get 503', async () => {
    const settings = await fresh()
    await publishSnapshot(settings.DATA_DIR, oneApp())
    await using api = await startApi(settings.DATA_DIR, { environment: asEnvironment(settings) })
    const [key, manager] = [await api.makeKey(), await api.makeKey('management')]
    await using other = await openStore(settings)
    const writing = await beginTransaction(other, async (queries) => {
      if (name === 'PostgreSQL') await queries.query('LOCK TABLE quotas IN EXCLUSIVE MODE')
    })

    const rankings = '/datasets/app-rankings'
    const counted = api.get(rankings, key)
    expect((await api.get('/scim/groups', manager)).status).toBe(200)
    expect((await api.get(rankings, key, { method: 'HEAD' })).status).toBe(200)
    expect((await api.get(rankings, UNKNOWN_KEY)).status).toBe(401)
    const listed = await runCommandLine(keys, ['list'], asEnvironment(settings))
    expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining(key.slice(-4))])
    const refused = await counted
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([503, '2'])

    writing.end()
    await writing.ended
    // A request that was answered 503 is not counted afterwards either.
    const limits = (await api.get(rankings, key)).headers.get('RateLimit')
    expect(limits).toMatch(/"per-minute";r=29;.*"per-day";r=499;/)
  })
})

stores.describeOnce('a store in an SQLite file', () => {
  const { fresh } = stores.sqlite

  it('has a transaction on the disk before it is done; single statements, which count requests, are not synced', async () => {
    await using counter = await openCounter(await fresh())
    await using probe = await open(import.meta.filename)
    const synced: unknown[] = []
    const handles: FileHandle = Object.getPrototypeOf(probe)
    vi.spyOn(handles, 'sync').mockImplementation(async function (this: FileHandle) {
      synced.push([basename(readlinkSync(`/proc/self/fd/${this.fd}`)), await counter.value()])
    })
    await counter.query('UPDATE counter SET n = 1')
    expect(synced).toEqual([])
    await counter.transaction((queries) => queries.query('UPDATE counter SET n = 2'))
    expect(synced).toEqual([['service.sqlite-wal', 2]])
  })

  it('that another process keeps locked is waited for no longer than the limit, and named with the remedy', async () => {
    const settings = await fresh()
    await using counter = await openCounter(settings)
    await using other = await openCounter(settings)
    const writing = await beginTransaction(other, (queries) => queries.query('UPDATE counter SET n = 5'))
    let time = 0
    vi.spyOn(performance, 'now').mockImplementation(() => (time += 4000))
    const add = 'UPDATE counter SET n = n + 1'
    await expect(counter.query(add)).rejects.toThrow('database is locked')
    await expect(counter.transaction((queries) => queries.query(add))).rejects.toThrow(
      /database is locked \(.*service\.sqlite\): try again once no other process writes into it$/,
    )
    writing.end()
    await writing.ended
    expect(await counter.value()).toBe(5)
  })
})
