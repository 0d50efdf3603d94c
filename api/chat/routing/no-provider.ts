/** The error when no provider served a request (CONTRACT 6). */
import { ApiError } from '../../http/errors.ts'
import type { AttemptFailure, ErrorType } from './failure.ts'
import type { Candidate } from '../observer.ts'

export interface FailedAttempt {
  readonly candidate: Candidate
  readonly failure: AttemptFailure
  /** HTTP status of the provider; null without a reply. */
  readonly status: number | null
}

// Delays clients that retry by themselves, some for an hour.
const RETRY_AFTER_SECONDS = 5

/** The most useful error for the caller comes first: agents shorten their context and retry. */
const REFUSALS: readonly ErrorType[] = [
  'context_length_exceeded',
  'payload_too_large',
  'content_policy_violation',
  'invalid_request',
]

/**
 * The error for failed attempts: 400 if each rejected the request itself, 429 if all were rate-limited, 408 if all
 * timed out or no time was left, otherwise 502. Providers' own 401, 402 and bodies are never passed on.
 */
export function noProviderAvailable(attempts: readonly FailedAttempt[]): ApiError {
  if (attempts.length === 0) return noTimeLeft()
  const status = statusOf(attempts)
  return new ApiError(status, describe(attempts), {
    metadata: {
      error_type: errorTypeOf(status, attempts),
      provider_name: attempts.at(-1)?.candidate.provider ?? null,
      previous_errors: attempts.map(({ candidate, failure, status: code }) => ({
        model: candidate.model,
        provider_name: candidate.provider,
        code,
        error_type: failure.errorType,
      })),
    },
    headers: retryHeaders(status, attempts),
  })
}

function noTimeLeft(): ApiError {
  const message =
    'No provider was tried: the request took longer than its time limit to arrive; ' +
    'send it faster, or ask the operator to raise limits.total_ms of the routing configuration'
  const metadata = { error_type: 'timeout', provider_name: null, previous_errors: [] }
  return new ApiError(408, message, { metadata })
}

function statusOf(attempts: readonly FailedAttempt[]): 400 | 408 | 429 | 502 {
  if (attempts.every(({ failure }) => failure.rule.refusesRequest)) return 400
  if (attempts.every(({ failure }) => failure.kind === 'rateLimited')) return 429
  return attempts.every(({ failure }) => failure.errorType === 'timeout') ? 408 : 502
}

function errorTypeOf(status: 400 | 408 | 429 | 502, attempts: readonly FailedAttempt[]): ErrorType {
  const types = attempts.map(({ failure }) => failure.errorType)
  if (status === 400) return REFUSALS.find((type) => types.includes(type)) ?? 'invalid_request'
  if (status === 429) return 'rate_limit_exceeded'
  if (status === 408) return 'timeout'
  return types.every((type) => type === 'server') ? 'server' : 'provider_unavailable'
}

/** OpenAI's clients read X-Should-Retry to decide whether to resend a request. */
function retryHeaders(status: number, attempts: readonly FailedAttempt[]): Record<string, string> {
  const areUsedUp = attempts.every(({ failure }) => failure.kind === 'quotaUsedUp')
  if (status === 400 || areUsedUp) return { 'X-Should-Retry': 'false' }
  if (status === 408) return {}
  const delays = attempts.map(({ failure }) => failure.retryAfterSeconds).filter((one) => one !== undefined)
  const seconds = status === 429 && delays.length > 0 ? Math.max(1, Math.min(...delays)) : RETRY_AFTER_SECONDS
  return { 'Retry-After': String(seconds) }
}

function describe(attempts: readonly FailedAttempt[]): string {
  const sentences = attempts.map(
    ({ candidate, failure }) => `${candidate.provider} (${candidate.model}) ${failure.message}`,
  )
  return `No provider served the request: ${sentences.join('; ')}`
}
