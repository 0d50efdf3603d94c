/** CONTRACT 4.5, 5 and 10: what the service stores, in either database. */
import { readlinkSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { basename } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { openStore, type StoreSettings } from '../../../api/store/open-store.ts'
import type { Store } from '../../../api/store/store.ts'
import { stores } from '../../support/stores.ts'

afterEach(() => vi.restoreAllMocks())

async function openCounter(settings: StoreSettings) {
  const store = await openStore(settings, new Date())
  await store.query('CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, n BIGINT NOT NULL)')
  await store.query("INSERT INTO counter VALUES ('a', 0), ('b', 0) ON CONFLICT DO NOTHING")
  const value = async (name = 'a') =>
    (await store.query('SELECT n FROM counter WHERE name = $1', [name]))[0]?.['n']
  return { store, value, [Symbol.asyncDispose]: () => store.close() }
}

/** A transaction that has written, and lasts until the test ends it. */
async function beginWriting(store: Store, sql: string) {
  const { promise: may, resolve: end } = Promise.withResolvers<void>()
  const { promise: wrote, resolve: begun } = Promise.withResolvers<void>()
  const ended = store.transaction(async (queries) => {
    await queries.query(sql)
    begun()
    await may
  })
  await Promise.race([wrote, ended])
  return async () => {
    end()
    await ended
  }
}

/** Lets other ready work run first. */
function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

describe.each(stores.kinds)('Store.query on $name', ({ fresh }) => {
  it('binds $1, $2 … in any order and more than once; counts, sums, fractions and booleans are numbers', async () => {
    await using counter = await openCounter(await fresh())
    const rowsOf = async (...statement: Parameters<Store['query']>) =>
      (await counter.store.query(...statement)).map((row) => ({ ...row }))
    const bound = await rowsOf('SELECT $2 AS b, $1 AS a, $2 AS c', ['x', null])
    expect(bound).toEqual([{ a: 'x', b: null, c: null }])
    await counter.store.query('UPDATE counter SET n = $1', [3_000_000_000])
    const sql =
      'SELECT count(*) AS rows, sum(n) AS sum, max(n) AS max, 1.5 AS more, 1 = 1 AS yes, 1 = 2 AS no FROM counter'
    const numbers = { rows: 2, sum: 6_000_000_000, max: 3_000_000_000, more: 1.5, yes: 1, no: 0 }
    expect(await rowsOf(sql)).toEqual([numbers])
  })

  it('rejects other numbers of parameters, whole numbers beyond 2^53 and invalid SQL, and works on', async () => {
    await using counter = await openCounter(await fresh())
    const sql = "SELECT 1 AS found WHERE $2 = 'y' AND $1 = 'x'"
    for (const values of [[], ['x'], ['x', 'y', 'z']])
      await expect(counter.store.query(sql, values)).rejects.toThrow(/parameter/)
    await expect(counter.store.query('SELECT 1 FROM nowhere')).rejects.toThrow('nowhere')
    await counter.store.query('UPDATE counter SET n = 9007199254740993')
    await expect(counter.value()).rejects.toThrow('9007199254740993')
    expect(await counter.store.query(sql, ['x', 'y'])).toHaveLength(1)
  })
})

describe.each(stores.kinds)('Store.transaction on $name', ({ fresh }) => {
  it('rolls back no query of others', async () => {
    await using counter = await openCounter(await fresh())
    let began: () => void = () => undefined
    const beginning = new Promise<void>((resolve) => (began = resolve))
    const failing = counter.store.transaction(async (queries) => {
      await queries.query("UPDATE counter SET n = 5 WHERE name = 'a'")
      began()
      await pause()
      throw new Error('no')
    })
    const other = beginning.then(() => counter.store.query("UPDATE counter SET n = 7 WHERE name = 'b'"))
    await expect(failing).rejects.toThrow('no')
    await other
    expect([await counter.value('a'), await counter.value('b')]).toEqual([0, 7])
  })

  it('is committed or rolled back as a whole if the work goes on after a failed statement', async () => {
    await using counter = await openCounter(await fresh())
    const kept = await counter.store
      .transaction(async (queries) => {
        await queries.query('UPDATE counter SET n = 5')
        await queries.query('SELECT 1 FROM nowhere').catch(() => undefined)
      })
      .then(
        () => true,
        () => false,
      )
    expect(await counter.value()).toBe(kept ? 5 : 0)
  })
})

stores.describeOnce('A store in an SQLite file', () => {
  const { fresh } = stores.sqlite

  it('has a transaction on the disk before it is done; single statements, which count requests, are not synced', async () => {
    await using counter = await openCounter(await fresh())
    await using probe = await open(import.meta.filename)
    const synced: unknown[] = []
    const handles: FileHandle = Object.getPrototypeOf(probe)
    vi.spyOn(handles, 'sync').mockImplementation(async function (this: FileHandle) {
      synced.push([basename(readlinkSync(`/proc/self/fd/${this.fd}`)), await counter.value()])
    })
    await counter.store.query('UPDATE counter SET n = 1')
    expect(synced).toEqual([])
    await counter.store.transaction((queries) => queries.query('UPDATE counter SET n = 2'))
    expect(synced).toEqual([['service.sqlite-wal', 2]])
  })

  it('finishes pending queries before it is closed', async () => {
    const counter = await openCounter(await fresh())
    const asked = counter.value()
    await counter.store.close()
    expect(await asked).toBe(0)
  })

  it('fails with a message if another process keeps it locked', async () => {
    const settings = await fresh()
    await using counter = await openCounter(settings)
    await using other = await openCounter(settings)
    const end = await beginWriting(other.store, 'UPDATE counter SET n = 5')
    let time = 0
    vi.spyOn(performance, 'now').mockImplementation(() => (time += 4000))
    const add = 'UPDATE counter SET n = n + 1'
    const asked = [counter.store.query(add), counter.store.transaction((queries) => queries.query(add))]
    const results = await Promise.all(asked.map((each) => each.then(() => 'done', String)))
    await end()
    for (const each of results) expect(each).toContain('database is locked')
    expect(results[1]).toMatch(/\(.*service\.sqlite\): try again once no other process writes into it$/)
    expect(await counter.value()).toBe(5)
  })
})

describe.each(stores.kinds)('Store.close on $name', ({ fresh }) => {
  it('waits for the running transaction', async () => {
    const settings = await fresh()
    {
      const counter = await openCounter(settings)
      const work = counter.store.transaction(async (queries) => {
        await pause()
        await queries.query('UPDATE counter SET n = 9')
      })
      await Promise.all([work, counter.store.close()])
    }
    await using counter = await openCounter(settings)
    expect(await counter.value()).toBe(9)
  })
})
