/** The two rate limits (CONTRACT 4.5), and what follows from how much of them is used. Times are ms since 1970. */
import { millisecondsInDay, millisecondsInMinute } from 'date-fns/constants'
import type { Caller } from '../../http/call.ts'

export interface Policy {
  readonly name: string
  /** Requests allowed in one window. */
  readonly limit: number
  readonly windowSeconds: number
  /** Per what the limit holds, for documents. */
  readonly sentence: string
  /** Whose requests are counted together. */
  readonly subject: (caller: Caller) => string
  /** End of a window whose first request comes at `now`. */
  readonly windowEnd: (now: number) => number
}

/** The limits in force, in the order in which the headers state them. */
export const POLICIES: readonly Policy[] = [
  {
    name: 'per-minute',
    limit: 30,
    windowSeconds: 60,
    sentence: 'per minute and key',
    subject: (caller) => caller.keyId,
    windowEnd: (now) => now + millisecondsInMinute,
  },
  {
    name: 'per-day',
    limit: 500,
    windowSeconds: 86_400,
    sentence: 'per UTC day and account',
    subject: (caller) => caller.accountId,
    windowEnd: (now) => (Math.floor(now / millisecondsInDay) + 1) * millisecondsInDay,
  },
]

/** Counts requests against the limits; `now` is the time of the request. */
export interface RateLimiter {
  /** Counts one request, unless a limit is used up: a refused request counts against none. */
  consume(caller: Caller, now: Date): Promise<Decision>
  /** How the limits stand for a request that does not count, such as a HEAD. */
  peek(caller: Caller, now: Date): Promise<Decision>
}

/** The answer to one request: what is left, and the policy that refuses it, if one does. */
export interface Decision {
  readonly quotas: readonly Quota[]
  readonly exhausted: Quota | undefined
}

/** What is left of one policy. */
export interface Quota {
  readonly policy: Policy
  readonly remaining: number
  /** Whole seconds until the window ends, at least 1. */
  readonly resetSeconds: number
}

/** Requests of one subject that were counted together. */
export interface Window {
  readonly ends: number
  readonly used: number
}

/**
 * The latest end of a window that is still open. One that ends later was begun by a clock that was wrong and has been
 * set back since: it would shut callers out for as long. The clocks of several machines may differ by less than a
 * window.
 */
export function latestEnd({ windowEnd, windowSeconds }: Policy, now: number): number {
  return windowEnd(now + windowSeconds * 1000)
}

/** What is left, given the open window of each policy; undefined where there is none. */
export function decide(windows: readonly (Window | undefined)[], now: number): Decision {
  const quotas = POLICIES.map((policy, index) => quotaOf(policy, windows[index], now))
  return { quotas, exhausted: longestWait(quotas.filter(({ remaining }) => remaining === 0)) }
}

/** The quotas of a caller that has used nothing, or is not known. */
export function fullQuotas(now: Date): readonly Quota[] {
  return decide([], now.getTime()).quotas
}

function quotaOf(policy: Policy, window: Window | undefined, now: number): Quota {
  const { ends, used } = window ?? { ends: policy.windowEnd(now), used: 0 }
  return {
    policy,
    remaining: Math.max(0, policy.limit - used),
    resetSeconds: Math.ceil((ends - now) / 1000),
  }
}

// With both limits used up, waiting for the nearer end would only earn the other refusal.
function longestWait(quotas: readonly Quota[]): Quota | undefined {
  return quotas.toSorted((a, b) => b.resetSeconds - a.resetSeconds)[0]
}
