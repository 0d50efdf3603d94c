/** Rate limits (CONTRACT 4.5 and 6), their remaining quotas, and the headers that state them. Times are ms since 1970. */
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

const MINUTE_SECONDS = 60
const DAY_SECONDS = 86_400

const PER_MINUTE = { name: 'per-minute', limit: 30, windowSeconds: MINUTE_SECONDS, unit: 'requests' } as const
const PER_DAY = { name: 'per-day', limit: 500, windowSeconds: DAY_SECONDS, unit: 'requests' } as const
const KEY_REQUESTS = {
  name: 'key-requests-per-minute',
  windowSeconds: MINUTE_SECONDS,
  unit: 'requests',
} as const
const KEY_TOKENS = { name: 'key-tokens-per-day', windowSeconds: DAY_SECONDS, unit: 'tokens' } as const

/** The limits of the dataset's paths, in the order of the headers, each with its unit for documents. */
export const POLICIES: readonly (Policy & { readonly sentence: string })[] = [
  { ...PER_MINUTE, sentence: 'per minute and key' },
  { ...PER_DAY, sentence: 'per UTC day and account' },
]

/** What a request counts against: a policy, and the key or account that it is counted for. */
export interface Claim {
  readonly policy: Policy
  readonly subject: string
}

/** The claims of a request to the dataset's paths. */
export function datasetClaims({ keyId, accountId }: Caller): readonly Claim[] {
  return [
    { policy: PER_MINUTE, subject: keyId },
    { policy: PER_DAY, subject: accountId },
  ]
}

/** The claims of a chat request: on the requests and on the tokens that its key is limited to, if any. */
export function keyClaims({ keyId: subject, limits }: Caller) {
  const claims = (policy: Omit<Policy, 'limit'>, limit: number | null = null): readonly Claim[] =>
    limit === null ? [] : [{ policy: { ...policy, limit }, subject }]
  return {
    requests: claims(KEY_REQUESTS, limits?.requestsPerMinute),
    tokens: claims(KEY_TOKENS, limits?.tokensPerDay),
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
  return {
    policy,
    remaining: Math.max(0, policy.limit - used),
    resetSeconds: Math.ceil((windowEnd(policy, now) - now) / 1000),
  }
}

const POLICY_FIELD = POLICIES.map(
  (policy) => `"${policy.name}";q=${policy.limit};w=${policy.windowSeconds}`,
).join(', ')

/** The fields of draft-ietf-httpapi-ratelimit-headers: the dataset's policies and their remaining quotas. */
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
    `Rate limit "${policy.name}" is used up: ${policy.limit} ${policy.unit} in ${policy.windowSeconds} seconds; ` +
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
