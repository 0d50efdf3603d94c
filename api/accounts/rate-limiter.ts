/** Counts in the store, so that restarts and several processes agree (CONTRACT 4.5 and 6). */
import { z } from 'zod'
import type { Caller, Clock, Reply } from '../http/call.ts'
import type { Log } from '../process/log.ts'
import { collectTurn, places, type RequestStore } from '../store/request-store.ts'
import {
  DAY_SECONDS,
  datasetClaims,
  MINUTE_SECONDS,
  quotaHeaders,
  quotaOf,
  tooManyRequests,
  windowEnd,
  type Claim,
  type Quota,
} from './policies.ts'

/** Counts requests against limits; `now` is the time of the request. */
export interface RateLimiter {
  /** Counts one request against all `claims`, unless a limit is used up. */
  consume(claims: readonly Claim[], now: Date): Promise<Decision>
  /** The state of the limits for a request that does not count, such as a HEAD. */
  peek(claims: readonly Claim[], now: Date): Promise<Decision>
  /** Adds `amount` to what is used, also beyond the limit. */
  add(claim: Claim, amount: number, now: Date): Promise<void>
}

/** The result for one request: the remaining quotas, and the exhausted one, if any. */
export interface Decision {
  readonly quotas: readonly Quota[]
  readonly exhausted: Quota | undefined
}

const PEEK = (rows: number) => `
  SELECT policy, subject, window_ends, used FROM quotas
  WHERE (policy, subject, window_ends) IN (VALUES ${places(3, rows)})`
// One statement, so that concurrent requests of any process are counted exactly. Whoever is counted beyond the limit was
// too late; that changes no quota, since its window is used up.
const COUNT = (rows: number) => `
  INSERT INTO quotas (policy, subject, window_ends, used) VALUES ${places(4, rows)}
  ON CONFLICT (policy, subject, window_ends) DO UPDATE SET used = quotas.used + excluded.used
  RETURNING policy, subject, window_ends, used`
const DELETE_PAST = 'DELETE FROM quotas WHERE window_ends < $1'

/** Past windows are deleted this often, and this late, since the clocks of several machines differ. */
const DELETE_EVERY_MS = 60_000
const DELETE_LATE_MS = 120_000

const usedSchema = z.array(
  z.object({ policy: z.string(), subject: z.string(), window_ends: z.string(), used: z.number() }),
)

export function createRateLimiter(store: RequestStore): RateLimiter {
  let deletedAt = 0
  function deletePast(now: number): void {
    if (Math.abs(now - deletedAt) < DELETE_EVERY_MS) return
    deletedAt = now
    // Whatever is left over goes the next time.
    store.query(DELETE_PAST, [isoTime(now - DELETE_LATE_MS)]).catch(() => undefined)
  }

  const [read, count] = [createReader(store), createCounter(store)]

  async function peek(claims: readonly Claim[], now: Date): Promise<Decision> {
    const used = await Promise.all(claims.map((claim) => read(windowOf(claim, now))))
    return decide(claims.map(({ policy }, index) => quotaOf(policy, used[index] ?? 0, now.getTime())))
  }

  return {
    peek,
    async consume(claims, now) {
      deletePast(now.getTime())
      // A rejected request counts against no limit.
      const before = await peek(claims, now)
      if (before.exhausted !== undefined) return before
      const quotas: Quota[] = []
      for (const claim of claims) {
        const used = await count({ window: windowOf(claim, now), amount: 1 })
        // Others have taken the last place since the look.
        if (used > claim.policy.limit) return await peek(claims, now)
        quotas.push(quotaOf(claim.policy, used, now.getTime()))
      }
      return { quotas, exhausted: undefined }
    },
    async add(claim, amount, now) {
      await count({ window: windowOf(claim, now), amount })
    },
  }
}

/** The key of a row of quotas. */
type Window = readonly [policy: string, subject: string, windowEnds: string]

interface Count {
  readonly window: Window
  readonly amount: number
}

function windowOf({ policy, subject }: Claim, now: Date): Window {
  return [policy.name, subject, isoTime(windowEnd(policy, now.getTime()))]
}

/** Returns what is used in a window. */
function createReader(store: RequestStore) {
  return collectTurn(async (windows: readonly Window[]) => {
    const wanted = [...new Map(windows.map((window) => [window.join(), window])).values()]
    const used = usedByWindow(await store.query(PEEK(wanted.length), wanted.flat()))
    return (window) => used.get(window.join()) ?? 0
  })
}

/** Counts an amount; returns what is used with it, and with what was counted before it. */
function createCounter(store: RequestStore) {
  return collectTurn(async (counts: readonly Count[]) => {
    const amounts = new Map<string, [...Window, amount: number]>()
    for (const { window, amount } of counts) {
      const key = window.join()
      amounts.set(key, [...window, amount + (amounts.get(key)?.[3] ?? 0)])
    }
    // In one order, since PostgreSQL locks one row after the other.
    const rows = [...amounts.keys()].toSorted().map((key) => amounts.get(key) ?? [])
    const used = usedByWindow(await store.query(COUNT(rows.length), rows.flat()))
    for (const [key, [, , , amount]] of amounts) used.set(key, (used.get(key) ?? 0) - amount)
    return ({ window, amount }) => {
      const key = window.join()
      const total = (used.get(key) ?? 0) + amount
      used.set(key, total)
      return total
    }
  })
}

function usedByWindow(rows: readonly unknown[]): Map<string, number> {
  return new Map(
    usedSchema
      .parse(rows)
      .map(({ policy, subject, window_ends: ends, used }) => [[policy, subject, ends].join(), used]),
  )
}

function isoTime(time: number): string {
  return new Date(time).toISOString()
}

function decide(quotas: readonly Quota[]): Decision {
  // If both limits are used up, waiting for the nearer end would only give another 429.
  const [exhausted] = quotas
    .filter(({ remaining }) => remaining === 0)
    .toSorted((one, other) => other.resetSeconds - one.resetSeconds)
  return { quotas, exhausted }
}

/**
 * Applies the caller's rate limits to one request: counts it unless it is free, and sets the headers. A free request
 * passes even if a limit is used up (CONTRACT 4.5).
 * @throws {ApiError} 429 if a limit is used up.
 */
export type ApplyLimits = (reply: Reply, cost: 'counted' | 'free') => Promise<void>

/** Call the result once per request, after authentication. */
export function createApplyLimits(limiter: RateLimiter, clock: Clock): ApplyLimits {
  return async (reply, cost) => {
    const { caller } = reply.locals
    if (caller === undefined) throw new TypeError('Only an authenticated request can be counted')
    const isCounted = cost === 'counted'
    const decision = await limiter[isCounted ? 'consume' : 'peek'](datasetClaims(caller), clock())
    reply.set(quotaHeaders(decision.quotas))
    if (isCounted) refuseExhausted(decision)
  }
}

/** The limits of a single key for chat (CONTRACT 6): requests a minute and tokens a UTC day. */
export interface KeyLimits {
  /**
   * Counts a request that begins.
   * @throws {ApiError} 429 if a limit of its key is used up.
   */
  begin(caller: Caller): Promise<void>
  /** Counts the tokens of a request that has ended. Never rejects: a failure is logged. */
  spend(caller: Caller, tokens: number): Promise<void>
}

export function createKeyLimits(limiter: RateLimiter, clock: Clock, log: Log): KeyLimits {
  return {
    async begin(caller) {
      const [requests, tokens] = [requestClaims(caller), tokenClaims(caller)]
      if (tokens.length > 0) refuseExhausted(await limiter.peek([...requests, ...tokens], clock()))
      if (requests.length > 0) refuseExhausted(await limiter.consume(requests, clock()))
    },
    async spend(caller, tokens) {
      if (tokens <= 0) return
      try {
        for (const claim of tokenClaims(caller)) await limiter.add(claim, tokens, clock())
      } catch (error) {
        log.error({ err: error, key_id: caller.keyId, tokens }, 'tokens could not be counted for a limit')
      }
    },
  }
}

function requestClaims({ keyId, limits }: Caller): readonly Claim[] {
  const limit = limits?.requestsPerMinute ?? undefined
  const rest = { name: 'key-requests-per-minute', windowSeconds: MINUTE_SECONDS, unit: 'requests' } as const
  return limit === undefined ? [] : [{ policy: { ...rest, limit }, subject: keyId }]
}

function tokenClaims({ keyId, limits }: Caller): readonly Claim[] {
  const limit = limits?.tokensPerDay ?? undefined
  const rest = { name: 'key-tokens-per-day', windowSeconds: DAY_SECONDS, unit: 'tokens' } as const
  return limit === undefined ? [] : [{ policy: { ...rest, limit }, subject: keyId }]
}

function refuseExhausted({ exhausted }: Decision): void {
  if (exhausted !== undefined) throw tooManyRequests(exhausted)
}
