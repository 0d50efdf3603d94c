import type { Clock, Reply } from '../../http/call.ts'
import { createOncePer } from '../../process/once-per.ts'
import { quotaHeaders, tooManyRequests, type QuotaHeaders } from './quota-headers.ts'
import { fullQuotas } from './policies.ts'
import type { RateLimiter } from './rate-limits.ts'

/**
 * Settles one request with its caller's rate limits: counts it, unless it is free, and notes how the limits stand, for
 * the reply's headers.
 * @throws {ApiError} 429 when a limit is used up, for a free request too.
 */
export type Spend = (reply: Reply, cost: 'counted' | 'free') => Promise<void>

/** The Spend of a rate limiter. Call it once per request, after authentication. */
export function createSpend(limiter: RateLimiter, clock: Clock): Spend {
  return async (reply, cost) => {
    const { caller } = reply.locals
    if (caller === undefined) throw new TypeError('Only an authenticated request can be counted')
    const now = clock()
    const verdict = cost === 'counted' ? limiter.take(caller, now) : limiter.peek(caller, now)
    const { quotas, exhausted } = await verdict
    reply.locals.limits = quotaHeaders(quotas)
    if (exhausted !== undefined) throw tooManyRequests(exhausted)
  }
}

/** How the limits stand for replies that end before anything is counted, such as a 401: the quota is full. */
export function statedLimits(clock: Clock): () => QuotaHeaders {
  // What a full quota says changes with the second.
  const statedAt = createOncePer(1000, (time) => quotaHeaders(fullQuotas(new Date(time))))
  return () => statedAt(clock().getTime())
}
