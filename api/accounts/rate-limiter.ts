/** Applies limits to requests: those of the dataset (CONTRACT 4.5), and those of a key for chat (CONTRACT 6). */
import type { Caller, Clock, Reply } from '../http/call.ts'
import type { Log } from '../process/log.ts'
import type { RequestStore } from '../store/request-store.ts'
import {
  datasetClaims,
  keyClaims,
  quotaHeaders,
  quotaOf,
  tooManyRequests,
  windowEnd,
  type Claim,
  type Quota,
} from './policies.ts'
import { createQuotas, windowKey } from './quotas.ts'

/** Counts requests against limits; `now` is the time of the request. */
export interface RateLimiter {
  /** Counts one request against all `claims`, unless a limit of them or of `others` is used up. */
  consume(claims: readonly Claim[], now: Date, others?: readonly Claim[]): Promise<Decision>
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

export function createRateLimiter(store: RequestStore): RateLimiter {
  const quotas = createQuotas(store)

  async function peek(claims: readonly Claim[], now: Date): Promise<Decision> {
    const used = await Promise.all(claims.map((claim) => quotas.used(windowOf(claim, now))))
    return decide(claims.map(({ policy }, index) => quotaOf(policy, used[index] ?? 0, now.getTime())))
  }

  return {
    peek,
    async consume(claims, now, others = []) {
      quotas.deletePast(now.getTime())
      // A rejected request counts against no limit.
      const before = await peek([...claims, ...others], now)
      if (before.exhausted !== undefined) return before
      const after: Quota[] = []
      for (const claim of claims) {
        const used = await quotas.count({ window: windowOf(claim, now), amount: 1 })
        // Others have taken the last place since the look. The count beyond the limit changes nothing: this window is used
        // up, and an earlier, shorter one ends no later.
        if (used > claim.policy.limit) return await peek(claims, now)
        after.push(quotaOf(claim.policy, used, now.getTime()))
      }
      return { quotas: after, exhausted: undefined }
    },
    async add(claim, amount, now) {
      await quotas.count({ window: windowOf(claim, now), amount })
    },
  }
}

function windowOf({ policy, subject }: Claim, now: Date): string {
  return windowKey(policy.name, subject, windowEnd(policy, now.getTime()))
}

function decide(quotas: readonly Quota[]): Decision {
  // If both limits are used up, waiting for the nearer end would only give another 429.
  const [exhausted] = quotas
    .filter(({ remaining }) => remaining === 0)
    .toSorted((one, other) => other.resetSeconds - one.resetSeconds)
  return { quotas, exhausted }
}

function refuseExhausted({ exhausted }: Decision): void {
  if (exhausted !== undefined) throw tooManyRequests(exhausted)
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

export type KeyLimits = ReturnType<typeof createKeyLimits>

/** The limits of a single key for chat: requests a minute and tokens a UTC day. */
export function createKeyLimits(limiter: RateLimiter, clock: Clock, log: Log) {
  return {
    /**
     * Counts a request that begins.
     * @throws {ApiError} 429 if a limit of its key is used up.
     */
    async begin(caller: Caller): Promise<void> {
      const { requests, tokens } = keyClaims(caller)
      if (requests.length + tokens.length > 0)
        refuseExhausted(await limiter.consume(requests, clock(), tokens))
    },
    /** Counts the tokens of a request that has ended. Never rejects: a failure is logged. */
    async spend(caller: Caller, tokens: number): Promise<void> {
      if (tokens <= 0) return
      try {
        for (const claim of keyClaims(caller).tokens) await limiter.add(claim, tokens, clock())
      } catch (error) {
        log.error({ err: error, key_id: caller.keyId, tokens }, 'tokens could not be counted for a limit')
      }
    },
  }
}
