import type { Clock, Gate, Reply } from '../call.ts'
import { quotaHeaders, tooManyRequests } from './quota-headers.ts'
import { fullQuotas } from './policies.ts'
import type { RateLimiter } from './rate-limits.ts'

/**
 * Settles one request with its caller's rate limits: states them in the reply's headers and counts the request,
 * unless it is free.
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
    reply.set(quotaHeaders(quotas))
    if (exhausted !== undefined) throw tooManyRequests(exhausted)
  }
}

/** States the limits on replies that end before anything is counted, such as a 401: the quota is full. */
export function stateLimits(clock: Clock): Gate {
  let stated: { readonly second: number; readonly headers: Readonly<Record<string, string>> } | undefined
  return (_request, reply, next) => {
    const now = clock()
    // What a full quota says changes with the second.
    const second = Math.floor(now.getTime() / 1000)
    if (stated?.second !== second) stated = { second, headers: quotaHeaders(fullQuotas(now)) }
    reply.set(stated.headers)
    next()
  }
}
