import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  CONNECTION_LIMITS,
  openConnections,
  type Connections,
} from '../../../../api/datasets/snapshots/connections.ts'
import { until } from '../../../support/api.ts'

let instance: DuckDBInstance
const opened: Connections[] = []

beforeAll(async () => (instance = await DuckDBInstance.create(':memory:')))
afterAll(async () => {
  for (const connections of opened) await connections.close()
  instance.closeSync()
})

function open(limits: Partial<typeof CONNECTION_LIMITS> = {}): Connections {
  const connections = openConnections(instance, { ...CONNECTION_LIMITS, ...limits })
  opened.push(connections)
  return connections
}

/** A slow query: longer than any limit of these tests. */
const HEAVY = 'SELECT count(*) AS n FROM range($rows) AS a (i) WHERE hash(i) % 7 = 3'
/** Long for a small query, even on a busy machine. */
const QUERY_MS = 1000
const FOREVER = { rows: 1e13 }
const AWHILE = { rows: 3e7 }

const TOO_LONG = {
  status: 503,
  headers: { 'Retry-After': '2' },
  message: expect.stringContaining('too long'),
}

describe('openConnections', () => {
  it('binds values by name, nulls too, independently of earlier queries', async () => {
    const { query } = open()
    const sql = "SELECT coalesce($a, 'none') AS a, $b AS b"
    expect(await query(sql, { a: '2', b: 'x' })).toEqual([{ a: '2', b: 'x' }])
    expect(await query(sql, { a: null, b: null })).toEqual([{ a: 'none', b: null }])
  })

  it('ends a query that takes too long with a 503, and goes on', async () => {
    const { query } = open({ connections: 1, queryMs: QUERY_MS })
    await expect(query(HEAVY, FOREVER)).rejects.toMatchObject(TOO_LONG)
    // On a busy machine the first of these may take too long as well.
    expect(await until(() => query('SELECT 1 AS one', {}).catch(() => false))).toEqual([{ one: 1 }])
  })

  it('counts waiting as time of a query', async () => {
    const { query } = open({ connections: 1, queryMs: 100 })
    const asked = [FOREVER, { rows: 1 }].map((rows) => query(HEAVY, rows).catch((fault: unknown) => fault))
    for (const fault of await Promise.all(asked)) expect(fault).toMatchObject(TOO_LONG)
  })

  it('also ends queries that get a connection just when their time is over', async () => {
    const { query } = open({ connections: 1, queryMs: 40 })
    const asked: Promise<unknown>[] = []
    for (let round = 0; round < 60; round++) {
      asked.push(...Array.from({ length: 3 }, () => query(HEAVY, FOREVER).catch((error: unknown) => error)))
      await sleep(3)
    }
    for (const fault of await Promise.all(asked)) expect(fault).toMatchObject({ status: 503 })
  })

  it('gives the place of a connection that could not be opened to the next in the queue', async () => {
    let tries = 0
    const connect = async () => {
      tries += 1
      await sleep(10)
      if (tries < 3) throw new Error('no connection')
      return await instance.connect()
    }
    const connections = openConnections({ connect }, { ...CONNECTION_LIMITS, connections: 1 })
    const asked = await Promise.allSettled(
      [1, 2, 3, 4].map((n) => connections.query('SELECT $n AS n', { n })),
    )
    expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled', 'fulfilled'])
    await connections.close()
  })

  it('ends running and waiting queries when they are closed, and accepts no more', async () => {
    const connections = openConnections(instance, { ...CONNECTION_LIMITS, connections: 1 })
    const asked = Array.from({ length: 3 }, () =>
      connections.query(HEAVY, FOREVER).then(() => 'answered', String),
    )
    await sleep(100)
    await connections.close()
    // The query limit would end them too.
    for (const outcome of await Promise.all(asked)) expect(outcome).toContain('closed')
    await expect(connections.query('SELECT 1', {})).rejects.toThrow('closed')
  })

  it('limits the number of waiting queries', async () => {
    const { query } = open({ connections: 1, waiting: 2 })
    const first = query(HEAVY, AWHILE).then(() => 'ended')
    const waiting = [query('SELECT 1 AS one', {}), query('SELECT 2 AS two', {})]
    await expect(query('SELECT 3 AS three', {})).rejects.toMatchObject({
      status: 503,
      message: expect.stringContaining('waiting'),
    })
    expect(await first).toBe('ended')
    expect(await Promise.all(waiting)).toEqual([[{ one: 1 }], [{ two: 2 }]])
  })

  it('reports the error of a statement, and goes on', async () => {
    const { query } = open({ connections: 1 })
    await expect(query('SELECT nothing FROM nowhere', {})).rejects.toThrow('nowhere')
    expect(await query('SELECT 1 AS one', {})).toEqual([{ one: 1 }])
  })

  it('prepares a statement once per connection, and leaves neither a timer nor a statement behind', async () => {
    const connection = await instance.connect()
    const prepare = vi.spyOn(connection, 'prepare')
    const limits = { ...CONNECTION_LIMITS, connections: 1 }
    const connections = openConnections({ connect: async () => connection }, limits)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    for (const n of [1, 2]) expect(await connections.query('SELECT $n AS n', { n })).toEqual([{ n }])
    expect(vi.getTimerCount()).toBe(0)
    vi.useRealTimers()
    expect(prepare).toHaveBeenCalledTimes(1)
    const abort = vi.spyOn(AbortController.prototype, 'abort')
    await connections.close()
    expect(abort).not.toHaveBeenCalled()
    abort.mockRestore()
  })

  it('does not block the event loop while DuckDB works', async () => {
    const { query } = open()
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    let turns = 0
    const counting = setInterval(() => (turns += 1), 1)
    await Promise.all(Array.from({ length: 6 }, () => query(HEAVY, AWHILE)))
    clearInterval(counting)
    delay.disable()
    const [middle, most] = [delay.percentile(50), delay.max].map((ns) => (ns / 1e6).toFixed(1))
    process.stderr.write(`event loop under load: ${middle} ms in the middle, ${most} ms at most\n`)
    expect(turns).toBeGreaterThan(0)
  })
})
