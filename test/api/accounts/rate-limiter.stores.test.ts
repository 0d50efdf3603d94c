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

function left({ quotas }: Decision): number[] {
  return quotas.map((quota) => quota.remaining)
}

function waits({ quotas }: Decision): number[] {
  return quotas.map((quota) => quota.resetSeconds)
}

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

  describe('RateLimiter.consume', () => {
    it('accepts 30 requests of a key in a minute, and again in the next', async () => {
      await using limiter = await openLimiter(await fresh())
      for (let taken = 1; taken <= 30; taken += 1) {
        const decision = await limiter.consume(caller('key'), after(NOON, taken))
        expect(decision.exhausted).toBeUndefined()
        expect(left(decision)).toEqual([30 - taken, 500 - taken])
        expect(waits(decision)[0]).toBe(60 - taken)
      }
      const refused = await limiter.consume(caller('key'), after(NOON, 59.5))
      expect(refused.exhausted).toMatchObject({ policy: { name: 'per-minute' }, resetSeconds: 1 })
      const next = await limiter.consume(caller('key'), after(NOON, 60))
      expect(left(next)).toEqual([29, 469])
      expect(waits(next)[0]).toBe(60)
    })

    it('deletes the counts of past windows', async () => {
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

    it('counts a rejected request against neither limit', async () => {
      await using limiter = await openLimiter(await fresh())
      for (let taken = 0; taken < 40; taken += 1) await limiter.consume(caller('key'), NOON)
      expect(left(await limiter.consume(caller('other key'), NOON))).toEqual([29, 469])
    })

    it('counts the minute per key and the day per account', async () => {
      await using limiter = await openLimiter(await fresh())
      await limiter.consume(caller('one', 'a'), NOON)
      expect(left(await limiter.consume(caller('two', 'a'), NOON))).toEqual([29, 498])
      expect(left(await limiter.consume(caller('three', 'b'), NOON))).toEqual([29, 499])
    })

    it('accepts 500 requests of an account in a UTC day, and again from midnight on', async () => {
      await using limiter = await openLimiter(await fresh())
      await useDay(limiter, 500)
      const refused = await limiter.consume(caller('fresh'), after(NOON, 1))
      expect(refused.exhausted).toMatchObject({ policy: { name: 'per-day' }, resetSeconds: 43_199 })
      expect(left(refused)).toEqual([30, 0])

      const last = await limiter.consume(caller('fresh'), new Date('2026-11-20T23:59:59.999Z'))
      expect(last.exhausted?.resetSeconds).toBe(1)
      const first = await limiter.consume(caller('fresh'), new Date('2026-11-21T00:00:00Z'))
      expect(left(first)).toEqual([29, 499])
      expect(waits(first)[1]).toBe(86_400)
    })

    it('names the limit with the longer wait when both are used up', async () => {
      const settings = await fresh()
      await using limiter = await openLimiter(settings)
      await useDay(limiter, 500)
      await using other = await openLimiter(settings)
      const refused = await other.consume(caller('key-0'), after(NOON, 1))
      expect(left(refused)).toEqual([0, 0])
      expect(refused.exhausted?.policy.name).toBe('per-day')
    })

    it('counts each minute and day exactly if the clocks of two servers differ', async () => {
      await using limiter = await openLimiter(await fresh())
      await useDay(limiter, 30)
      expect(left(await limiter.consume(caller('key-0'), after(NOON, -1)))).toEqual([29, 469])
      const refused = await limiter.consume(caller('key-0'), after(NOON, 1))
      expect(refused.exhausted).toMatchObject({ policy: { name: 'per-minute' } })
      const dayBefore = after(NOON, -24 * 3600)
      expect(left(await limiter.consume(caller('key-0'), dayBefore))).toEqual([29, 499])
      expect(left(await limiter.peek(caller('key-1'), after(NOON, 2)))).toEqual([30, 469])
    })

    it('keeps counting after a restart', async () => {
      const settings = await fresh()
      {
        await using limiter = await openLimiter(settings)
        await limiter.consume(caller('key'), NOON)
      }
      await using limiter = await openLimiter(settings)
      expect(left(await limiter.consume(caller('key'), after(NOON, 1)))).toEqual([28, 498])
    })

    it('accepts exactly 30 of many simultaneous requests to several servers', async () => {
      const settings = await fresh()
      await using first = await openLimiter(settings)
      await using second = await openLimiter(settings)
      const decisions = await Promise.all(
        Array.from({ length: 100 }, (_, index) => (index % 2 ? first : second).consume(caller('key'), NOON)),
      )
      expect(decisions.filter(({ exhausted }) => exhausted === undefined)).toHaveLength(30)
    })

    it("gives the last place of the day to one of an account's keys", async () => {
      const settings = await fresh()
      await using first = await openLimiter(settings)
      await using second = await openLimiter(settings)
      await useDay(first, 499)
      const keys = Array.from({ length: 20 }, (_, index) => caller(`late-${index}`))
      const decisions = await Promise.all(
        keys.map((key, index) => (index % 2 ? first : second).consume(key, after(NOON, 1))),
      )
      expect(decisions.filter(({ exhausted }) => exhausted === undefined)).toHaveLength(1)
    })
  })

  describe('RateLimiter.consume in several processes', () => {
    it('accepts exactly 30 requests of a key in all', async () => {
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
      const args = ['--input-type=module', '-e', program]
      const options = { cwd: REPOSITORY, env: { ...process.env, ...asEnvironment(settings) } }
      const run = () => promisify(execFile)(process.execPath, args, options)
      const runs = await Promise.all([run(), run(), run()])
      expect(runs.reduce((sum, { stdout }) => sum + Number(stdout), 0)).toBe(30)
      expect(left(await first.peek(caller('key'), NOON))).toEqual([0, 470])
    })
  })

  describe('RateLimiter.peek', () => {
    it('counts nothing and returns the rest', async () => {
      await using limiter = await openLimiter(await fresh())
      const unused = await limiter.peek(caller('key'), NOON)
      expect(unused.exhausted).toBeUndefined()
      expect([left(unused), waits(unused)]).toEqual([
        [30, 500],
        [60, 43_200],
      ])
      for (let taken = 0; taken < 30; taken += 1) await limiter.consume(caller('key'), NOON)
      const decision = await limiter.peek(caller('key'), after(NOON, 10))
      expect(left(decision)).toEqual([0, 470])
      expect(decision.exhausted).toMatchObject({ policy: { name: 'per-minute' }, resetSeconds: 50 })
      expect((await limiter.peek(caller('key'), after(NOON, 60))).exhausted).toBeUndefined()
    })
  })
})
