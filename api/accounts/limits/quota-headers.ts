/**
 * How the rate limits are told: the fields of draft-ietf-httpapi-ratelimit-headers, and the 429 (CONTRACT 4.5).
 */
import type { Headers } from '../../http/call.ts'
import { ApiError } from '../../http/errors.ts'
import { POLICIES, type Quota } from './policies.ts'

const POLICY_FIELD = POLICIES.map(
  (policy) => `"${policy.name}";q=${policy.limit};w=${policy.windowSeconds}`,
).join(', ')

/** The headers that state the policies and what is left of them. */
export function quotaHeaders(quotas: readonly Quota[]): Headers {
  return {
    'RateLimit-Policy': POLICY_FIELD,
    RateLimit: quotas
      .map((quota) => `"${quota.policy.name}";r=${quota.remaining};t=${quota.resetSeconds}`)
      .join(', '),
  }
}

/** The refusal of a request past this limit; it names the limit and when to come back. */
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
