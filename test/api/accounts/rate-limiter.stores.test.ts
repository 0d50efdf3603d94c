/** CONTRACT 4.5: limits, exact over restarts, servers and processes. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { datasetClaims } from '../../../api/accounts/policies.ts'
import { createRateLimiter, type Decision } from '../../../api/accounts/rate-limiter.ts'
import type { Caller } from '../../../api/http/call.ts'
import { openStore, type StoreSettings } from '../../../api/store/open-store.ts'
import { until } from '../../support/api.ts'
import { REPOSITORY } from '../../support/processes.ts'
import { asEnvironment, TestStores } from '../../support/stores.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const NOON = new Date('2026-11-20T12:00:00Z')

function after(time: Date, seconds: number): Date {
  return new Date(time.getTime() + seconds * 1000)
}

function caller(keyId: string, accountId = 'account'): Caller {
  return { keyId, accountId, kind: 'inference' }
}

/** What is left of the minute and of the day, and whether one of them is exhausted. */
function left({ quotas, exhausted }: Decision) {
  return [...quotas.map((quota) => quota.remaining), exhausted?.policy.name]
}

function waits({ quotas }: Decision): number[] {
  return quotas.map((quota) => quota.resetSeconds)
}

const passed = (decisions: readonly Decision[]) =>
  decisions.filter(({ exhausted }) => exhausted === undefined).length

/** Sends `count` requests, each with its own key, so that only the account's day is used up. */
async function useDay(
  limiter: { consume: (who: Caller, now: Date) => Promise<Decision> },
  count: number,
  now = NOON,
) {
  for (let taken = 0; taken < count; taken += 1) {
    const decision = await limiter.consume(caller(`key-${Math.floor(taken / 30)}`), now)
    expect(decision.exhausted).toBeUndefined()
  }
}

describe.each(stores.kinds)('on $name', ({ fresh }) => {
  async function openLimiter(settings: StoreSettings) {
    const store = await openStore(settings, NOON)
    const limiter = createRateLimiter(store)
    return {
      consume: (who: Caller, now: Date) => limiter.consume(datasetClaims(who), now),
      peek: (who: Caller, now: Date) => limiter.peek(datasetClaims(who), now),
      [Symbol.asyncDispose]: () => store.close(),
    }
  }

  it('30 requests of a key pass in a minute and count for its account, and 30 more in the next minute', async () => {
    await using limiter = await openLimiter(await fresh())
    for (let taken = 1; taken <= 30; taken += 1) {
      const decision = await limiter.consume(caller('key'), after(NOON, taken))
      expect(left(decision)).toEqual([30 - taken, 500 - taken, undefined])
      expect(waits(decision)).toEqual([60 - taken, 43_200 - taken])
    }
    const refused = await limiter.consume(caller('key'), after(NOON, 59.5))
    expect(refused.exhausted).toMatchObject({ policy: { name: 'per-minute' }, resetSeconds: 1 })
    // The rejected request counts against neither limit, nor do requests of other accounts.
    expect(left(await limiter.consume(caller('other key'), after(NOON, 59.5)))).toEqual([29, 469, undefined])
    expect(left(await limiter.consume(caller('third', 'b'), after(NOON, 59.5)))).toEqual([29, 499, undefined])
    const next = await limiter.consume(caller('key'), after(NOON, 60))
    expect([left(next), waits(next)[0]]).toEqual([[29, 468, undefined], 60])
  })

  it('500 requests of an account pass in a UTC day, and again from midnight on', async () => {
    const settings = await fresh()
    await using limiter = await openLimiter(settings)
    await useDay(limiter, 500)
    // A server that starts counts on.
    await using other = await openLimiter(settings)
    const refused = await other.consume(caller('fresh'), after(NOON, 1))
    expect([left(refused), refused.exhausted?.resetSeconds]).toEqual([[30, 0, 'per-day'], 43_199])
    // Of two exhausted limits the one with the longer wait is named.
    expect(left(await other.consume(caller('key-0'), after(NOON, 1)))).toEqual([0, 0, 'per-day'])
    const last = await limiter.consume(caller('fresh'), new Date('2026-11-20T23:59:59.999Z'))
    expect(last.exhausted?.resetSeconds).toBe(1)
    const first = await limiter.consume(caller('fresh'), new Date('2026-11-21T00:00:00Z'))
    expect([left(first), waits(first)]).toEqual([
      [29, 499, undefined],
      [60, 86_400],
    ])
  })

  it('each minute and day is counted exactly if the clocks of two servers differ', async () => {
    await using limiter = await openLimiter(await fresh())
    await useDay(limiter, 30)
    expect(left(await limiter.consume(caller('key-0'), after(NOON, -1)))).toEqual([29, 469, undefined])
    expect(left(await limiter.consume(caller('key-0'), after(NOON, 1)))).toEqual([0, 469, 'per-minute'])
    const dayBefore = after(NOON, -24 * 3600)
    expect(left(await limiter.consume(caller('key-0'), dayBefore))).toEqual([29, 499, undefined])
    expect(left(await limiter.peek(caller('key-1'), after(NOON, 2)))).toEqual([30, 469, undefined])
  })

  it('of many simultaneous requests to several servers exactly 30 pass, and the last place of a day is given once', async () => {
    const settings = await fresh()
    const servers = [await openLimiter(settings), await openLimiter(settings)] as const
    const ask = (callers: readonly Caller[]) =>
      Promise.all(callers.map((who, index) => servers[index % 2 ? 1 : 0].consume(who, NOON)))
    expect(passed(await ask(Array.from({ length: 100 }, () => caller('key'))))).toBe(30)
    expect(left(await servers[0].peek(caller('other'), NOON))).toEqual([30, 470, undefined])
    await useDay(servers[0], 469)
    expect(passed(await ask(Array.from({ length: 20 }, (_, index) => caller(`late-${index}`))))).toBe(1)
    for (const each of servers) await each[Symbol.asyncDispose]()
  })

  it('of the requests to several processes exactly 30 pass', async () => {
    const settings = await fresh()
    await using first = await openLimiter(settings)
    const program = `
      const { createRateLimiter } = await import('./api/accounts/rate-limiter.ts')
      const { datasetClaims } = await import('./api/accounts/policies.ts')
      const { openStore } = await import('./api/store/open-store.ts')
      const { readSettings } = await import('./api/config.ts')
      const now = new Date(${NOON.getTime()})
      const store = await openStore(readSettings(process.env), now)
      const limiter = createRateLimiter(store)
      const who = datasetClaims({ keyId: 'key', accountId: 'account', kind: 'inference' })
      let passed = 0
      for (let n = 0; n < 25; n += 1) passed += (await limiter.consume(who, now)).exhausted ? 0 : 1
      console.log(passed)
      await store.close()`
    const options = { cwd: REPOSITORY, env: { ...process.env, ...asEnvironment(settings) } }
    const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], options)
    const runs = await Promise.all([run(), run(), run()])
    expect(runs.reduce((sum, { stdout }) => sum + Number(stdout), 0)).toBe(30)
    expect(left(await first.peek(caller('key'), NOON))).toEqual([0, 470, 'per-minute'])
  })

  it('counts of past windows are deleted', async () => {
    const settings = await fresh()
    await using limiter = await openLimiter(settings)
    for (const minutes of [0, 1, 10]) await limiter.consume(caller('key'), after(NOON, 60 * minutes))
    const store = await openStore(settings, NOON)
    await until(async () => {
      const minutes = await store.query("SELECT used FROM quotas WHERE policy = 'per-minute'")
      return minutes.length === 1
    })
    await store.close()
  })

  it('a request that does not count sees what is left', async () => {
    await using limiter = await openLimiter(await fresh())
    const unused = await limiter.peek(caller('key'), NOON)
    expect([left(unused), waits(unused)]).toEqual([
      [30, 500, undefined],
      [60, 43_200],
    ])
    await limiter.consume(caller('key'), NOON)
    const decision = await limiter.peek(caller('key'), after(NOON, 10))
    expect([left(decision), waits(decision)[0]]).toEqual([[29, 499, undefined], 50])
    expect(left(await limiter.peek(caller('key'), after(NOON, 60)))).toEqual([30, 499, undefined])
  })
})
