/**
 * The two rate limits (CONTRACT 4.5), their remaining quotas, and the headers that state them. Times are ms since 1970.
 */
import { millisecondsInDay, millisecondsInMinute } from 'date-fns/constants'
import type { Caller, Headers } from '../../http/call.ts'
import { ApiError } from '../../http/errors.ts'

export interface Policy {
  readonly name: string
  /** Requests allowed in one window. */
  readonly limit: number
  readonly windowSeconds: number
  /** The unit of the limit, for documents. */
  readonly sentence: string
  /** The subject that requests are counted for. */
  readonly subject: Exclude<keyof Caller, 'kind'>
  /** End of a window with its first request at `now`. */
  readonly windowEnd: (now: number) => number
}

/** The limits, in the order of the headers. */
export const POLICIES: readonly Policy[] = [
  {
    name: 'per-minute',
    limit: 30,
    windowSeconds: 60,
    sentence: 'per minute and key',
    subject: 'keyId',
    windowEnd: (now) => now + millisecondsInMinute,
  },
  {
    name: 'per-day',
    limit: 500,
    windowSeconds: 86_400,
    sentence: 'per UTC day and account',
    subject: 'accountId',
    windowEnd: (now) => (Math.floor(now / millisecondsInDay) + 1) * millisecondsInDay,
  },
]

/** The counted requests of one subject. */
export interface Window {
  readonly policy: string
  /** ISO 8601. */
  readonly window_ends: string
  readonly used: number
}

/** The rest of one policy. */
export interface Quota {
  readonly policy: Policy
  readonly remaining: number
  /** Whole seconds until the window ends, at least 1. */
  readonly resetSeconds: number
}

/** The quotas, given the open windows; an unknown caller has none. */
export function quotasOf(windows: readonly Window[], now: number): readonly Quota[] {
  return POLICIES.map((policy) => {
    const window = windows.find((each) => each.policy === policy.name)
    const ends = window === undefined ? policy.windowEnd(now) : Date.parse(window.window_ends)
    return {
      policy,
      remaining: Math.max(0, policy.limit - (window?.used ?? 0)),
      resetSeconds: Math.ceil((ends - now) / 1000),
    }
  })
}

const POLICY_FIELD = POLICIES.map(
  (policy) => `"${policy.name}";q=${policy.limit};w=${policy.windowSeconds}`,
).join(', ')

/** The fields of draft-ietf-httpapi-ratelimit-headers: the policies and their remaining quotas. */
export function quotaHeaders(quotas: readonly Quota[]): Headers {
  return {
    'RateLimit-Policy': POLICY_FIELD,
    RateLimit: quotas
      .map((quota) => `"${quota.policy.name}";r=${quota.remaining};t=${quota.resetSeconds}`)
      .join(', '),
  }
}

/** The 429 of an exhausted policy; names the limit and the wait. */
export function tooManyRequests({ policy, resetSeconds }: Quota): ApiError {
  const message =
    `Rate limit "${policy.name}" is used up: ${policy.limit} requests in ${policy.windowSeconds} seconds; ` +
    `retry in ${resetSeconds} seconds`
  return new ApiError(429, message, {
    headers: { 'Retry-After': String(resetSeconds) },
    metadata: {
      policy: policy.name,
      limit: policy.limit,
      window_seconds: policy.windowSeconds,
      retry_after: resetSeconds,
    },
  })
}
