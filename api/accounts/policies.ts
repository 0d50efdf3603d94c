/** The rate limits (CONTRACT 4.5 and 6), and how replies state them. Times are ms since 1970. */
import type { Caller, Headers } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'

/** A limit of something in each window of the clock: a minute, or a UTC day. */
export interface Policy {
  readonly name: string
  readonly limit: number
  readonly windowSeconds: number
  /** What is counted, in the plural. */
  readonly unit: 'requests' | 'tokens'
}

const MINUTE = { windowSeconds: 60, unit: 'requests' } as const
const DAY = { windowSeconds: 86_400, unit: 'requests' } as const

/** The limits of the dataset's paths, in the order of the headers, each with its unit for documents. */
export const POLICIES = [
  { ...MINUTE, name: 'per-minute', limit: 30, sentence: 'per minute and key' },
  { ...DAY, name: 'per-day', limit: 500, sentence: 'per UTC day and account' },
] as const

/** What a request counts against: a policy, and the key or account that it is counted for. */
export interface Claim {
  readonly policy: Policy
  readonly subject: string
}

/** The claims of a request to the dataset's paths. */
export function datasetClaims({ keyId, accountId }: Caller): readonly Claim[] {
  const [perMinute, perDay] = POLICIES
  return [
    { policy: perMinute, subject: keyId },
    { policy: perDay, subject: accountId },
  ]
}

/** The claims of a chat request: on the requests and on the tokens that its key is limited to, if any. */
export function keyClaims({ keyId: subject, limits }: Caller) {
  const claims = (limit: number | null, policy: Omit<Policy, 'limit'>): readonly Claim[] =>
    limit === null ? [] : [{ policy: { ...policy, limit }, subject }]
  return {
    requests: claims(limits.requests_per_minute, { ...MINUTE, name: 'key-requests-per-minute' }),
    tokens: claims(limits.tokens_per_day, { ...DAY, name: 'key-tokens-per-day', unit: 'tokens' }),
  }
}

/** The rest of one policy. */
export interface Quota {
  readonly policy: Policy
  readonly remaining: number
  /** Whole seconds until the window ends, at least 1. */
  readonly resetSeconds: number
}

/** The end of the window that contains `now`. */
export function windowEnd({ windowSeconds }: Policy, now: number): number {
  const windowMs = windowSeconds * 1000
  return (Math.floor(now / windowMs) + 1) * windowMs
}

/** The rest of a policy of which `used` is used. */
export function quotaOf(policy: Policy, used: number, now: number): Quota {
  const resetSeconds = Math.ceil((windowEnd(policy, now) - now) / 1000)
  return { policy, remaining: Math.max(0, policy.limit - used), resetSeconds }
}

/** The fields of draft-ietf-httpapi-ratelimit-headers: policies and their remaining quotas. */
export function quotaHeaders(quotas: readonly Quota[]): Headers {
  return {
    'RateLimit-Policy': quotas
      .map(({ policy }) => `"${policy.name}";q=${policy.limit};w=${policy.windowSeconds}`)
      .join(', '),
    RateLimit: quotas
      .map(({ policy, remaining, resetSeconds }) => `"${policy.name}";r=${remaining};t=${resetSeconds}`)
      .join(', '),
  }
}

/** The 429 for `quotas`, of which `exhausted` is used up; names the limit and the wait. */
export function tooManyRequests(quotas: readonly Quota[], { policy, resetSeconds }: Quota): ApiError {
  const { name, limit, unit, windowSeconds } = policy
  const message =
    `Rate limit "${name}" is used up: ${limit} ${unit} in ${windowSeconds} seconds; ` +
    `retry in ${resetSeconds} seconds`
  return new ApiError(429, message, {
    headers: { ...quotaHeaders(quotas), 'Retry-After': String(resetSeconds) },
    metadata: { policy: name, limit, window_seconds: windowSeconds, retry_after: resetSeconds },
  })
}
