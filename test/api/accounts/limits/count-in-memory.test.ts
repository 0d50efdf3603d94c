import { array, assert, asyncProperty, constantFrom, nat, record, type Arbitrary } from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { createStatementLimiter } from '../../../../api/accounts/limits/count-by-statement.ts'
import { MemoryLimiter } from '../../../../api/accounts/limits/count-in-memory.ts'
import type { Verdict } from '../../../../api/accounts/limits/policies.ts'
import type { RateLimiter } from '../../../../api/accounts/limits/rate-limits.ts'
import type { Caller } from '../../../../api/http/call.ts'
import { openStore } from '../../../../api/store/open-store.ts'
import type { AtOnce, Store } from '../../../../api/store/store.ts'
import { TemporaryFolders } from '../../../support/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const NOON = new Date('2026-11-20T12:00:00Z')
const WHO: Caller = { keyId: 'key', accountId: 'account', kind: 'inference' }
const OTHER: Caller = { keyId: 'other key', accountId: 'other account', kind: 'inference' }

function open(folder: string): Promise<Store> {
  return openStore({ DATA_DIR: folder }, NOON)
}

function memoryLimiter(store: Store, change: (atOnce: AtOnce) => AtOnce = (same) => same): MemoryLimiter {
  if (store.atOnce === undefined) throw new TypeError('The store is not inside this process')
  return new MemoryLimiter(change(store.atOnce), () => store.version())
}

function left({ quotas }: Verdict): number[] {
  return quotas.map(({ remaining }) => remaining)
}

interface Step {
  readonly kind: 'take' | 'peek'
  readonly key: number
  /** Requests that come at once. */
  readonly times: number
  readonly server: number
  /** After the step before; clocks of servers differ, and are put right. */
  readonly seconds: number
}

const step: Arbitrary<Step> = record({
  kind: constantFrom('take', 'peek'),
  key: nat(3),
  times: constantFrom(1, 2, 31),
  server: nat(1),
  seconds: constantFrom(0, 1, 20, 61, 43_200, -30, -3600, -200_000),
})

async function verdictsOf(servers: readonly [RateLimiter, RateLimiter], steps: readonly Step[]) {
  const verdicts: Verdict[][] = []
  let time = NOON.getTime()
  for (const { kind, key, times, server, seconds } of steps) {
    time += seconds * 1000
    const caller = { keyId: `key-${key}`, accountId: `account-${key % 2}`, kind: 'inference' } as const
    const limiter = servers[server === 0 ? 0 : 1]
    const asked = Array.from({ length: times }, () => limiter[kind](caller, new Date(time)))
    verdicts.push(await Promise.all(asked))
  }
  return verdicts
}

describe('MemoryLimiter', () => {
  it('gives the verdicts of one statement for each request, over two servers', async () => {
    await assert(
      asyncProperty(array(step, { maxLength: 30 }), async (steps) => {
        const folder = folders.make()
        const [one, two, plain] = [await open(folder), await open(folder), await open(folders.make())]
        const counted = await verdictsOf([memoryLimiter(one), memoryLimiter(two)], steps)
        const statement = createStatementLimiter(plain)
        expect(counted).toEqual(await verdictsOf([statement, statement], steps))
        for (const store of [one, two, plain]) await store.close()
      }),
      { numRuns: 60 },
    )
  })

  it('counts once what is written at the second attempt', async () => {
    await using store = await closing(folders.make())
    const limiter = memoryLimiter(store.store, failFirst)
    expect(left(await limiter.take(WHO, NOON))).toEqual([29, 499])
    expect(left(await limiter.take(WHO, NOON))).toEqual([28, 498])
    expect(left(await memoryLimiter(store.store).peek(WHO, NOON))).toEqual([28, 498])
  })

  it('counts nothing that could not be written', async () => {
    await using store = await closing(folders.make())
    let broken = false
    const limiter = memoryLimiter(
      store.store,
      (atOnce) => (kind, work) =>
        atOnce(kind, (run, version) => {
          const breaking: typeof run = (sql, values) => {
            if (broken && !sql.startsWith('SELECT')) throw new Error('The disk is full')
            return run(sql, values)
          }
          return work(breaking, version)
        }),
    )
    expect(left(await limiter.take(WHO, NOON))).toEqual([29, 499])
    broken = true
    const both = await Promise.allSettled([limiter.take(WHO, NOON), limiter.take(WHO, NOON)])
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    broken = false
    expect(left(await limiter.take(OTHER, NOON))).toEqual([29, 499])
    expect(left(await limiter.take(WHO, NOON))).toEqual([28, 498])
  })

  it('writes what a request has changed, and nothing that it wrote before', async () => {
    await using store = await closing(folders.make())
    const written: unknown[] = []
    const limiter = memoryLimiter(
      store.store,
      (atOnce) => (kind, work) =>
        atOnce(kind, (run, version) => {
          const noted: typeof run = (sql, values) => {
            if (sql.includes('INSERT')) written.push(values[1])
            return run(sql, values)
          }
          return work(noted, version)
        }),
    )
    await limiter.take(WHO, NOON)
    await limiter.take(OTHER, NOON)
    expect(written).toEqual(['key', 'account', 'other key', 'other account'])
  })

  it('keeps one row for each limit of a caller, which the next window takes over', async () => {
    await using store = await closing(folders.make())
    const rows = async () =>
      (await store.store.query('SELECT policy, window_ends, used FROM quotas ORDER BY policy')).map(
        (row) => ({
          ...row,
        }),
      )
    const limiter = memoryLimiter(store.store)
    const midnight = '2026-11-21T00:00:00.000Z'
    await limiter.take(WHO, NOON)
    await limiter.take(WHO, NOON)
    expect(await rows()).toEqual([
      { policy: 'per-day', window_ends: midnight, used: 2 },
      { policy: 'per-minute', window_ends: '2026-11-20T12:01:00.000Z', used: 2 },
    ])
    await limiter.take(WHO, new Date('2026-11-20T12:02:00Z'))
    await limiter.take(WHO, new Date('2026-11-20T12:02:01Z'))
    expect(await rows()).toEqual([
      { policy: 'per-day', window_ends: midnight, used: 4 },
      { policy: 'per-minute', window_ends: '2026-11-20T12:03:00.000Z', used: 2 },
    ])
  })

  it('asks the store no more for a caller past its limits', async () => {
    await using store = await closing(folders.make())
    let transactions = 0
    const limiter = memoryLimiter(store.store, (atOnce) => (kind, work) => {
      transactions += 1
      return atOnce(kind, work)
    })
    await Promise.all(Array.from({ length: 30 }, () => limiter.take(WHO, NOON)))
    const before = transactions
    expect((await limiter.take(WHO, NOON)).exhausted).toBeDefined()
    expect(left(await limiter.peek(WHO, NOON))).toEqual([0, 470])
    expect(transactions).toBe(before)
  })

  it('knows more callers than it remembers', async () => {
    await using store = await closing(folders.make())
    const limiter = memoryLimiter(store.store)
    const who = (number: number): Caller => ({
      ...WHO,
      keyId: `key-${number}`,
      accountId: `account-${number}`,
    })
    const all = Array.from({ length: 20_001 }, (_, number) => who(number))
    for (const expected of [29, 28]) {
      const verdicts = await Promise.all(all.map((caller) => limiter.take(caller, NOON)))
      expect(verdicts.every((verdict) => left(verdict)[0] === expected)).toBe(true)
    }
  })
})

async function closing(folder: string) {
  const store = await open(folder)
  return { store, [Symbol.asyncDispose]: () => store.close() }
}

/** Does all of the work, and then undoes it as a full disk would. */
function undo<Result>(
  atOnce: AtOnce,
  kind: Parameters<AtOnce>[0],
  work: Parameters<typeof atOnce<Result>>[1],
): Promise<Result> {
  return atOnce<Result>(kind, (run, version) => {
    work(run, version)
    throw new Error('The disk is full')
  })
}

const failFirst =
  (atOnce: AtOnce): AtOnce =>
  async (kind, work) => {
    await undo(atOnce, kind, work).catch(() => undefined)
    return await atOnce(kind, work)
  }
