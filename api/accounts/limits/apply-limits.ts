import type { Clock, Reply } from '../../http/call.ts'
import { quotaHeaders, tooManyRequests } from './quota-headers.ts'
import type { RateLimiter } from './policies.ts'

/**
 * Applies the rate limits of its caller to one request: counts it, unless it is free, and states the limits in the
 * reply's headers. A free request passes also when a limit is used up (CONTRACT 4.5).
 * @throws {ApiError} 429 when a limit is used up.
 */
export type ApplyLimits = (reply: Reply, cost: 'counted' | 'free') => Promise<void>

/** Call the result once per request, after authentication. */
export function createApplyLimits(limiter: RateLimiter, clock: Clock): ApplyLimits {
  return async (reply, cost) => {
    const { caller } = reply.locals
    if (caller === undefined) throw new TypeError('Only an authenticated request can be counted')
    const isCounted = cost === 'counted'
    const now = clock()
    const { quotas, exhausted } = await (isCounted ? limiter.consume(caller, now) : limiter.peek(caller, now))
    reply.set(quotaHeaders(quotas))
    if (isCounted && exhausted !== undefined) throw tooManyRequests(exhausted)
  }
}
