/** What a caller is told when no provider served its request (CONTRACT 6). */
import { ApiError } from '../../http/errors.ts'
import type { AttemptFailure, ErrorType } from './failure.ts'
import type { Candidate } from '../observer.ts'

/** A candidate that failed, and why. */
export interface FailedAttempt {
  readonly candidate: Candidate
  readonly failure: AttemptFailure
  /** HTTP status of the provider; null when no reply came. */
  readonly status: number | null
}

// Clients try again by themselves, some for an hour: this keeps them from doing it at once.
const RETRY_AFTER_SECONDS = 5

/** What a caller can do most about comes first: agents shorten their context, and ask again. */
const REFUSALS: readonly ErrorType[] = [
  'context_length_exceeded',
  'payload_too_large',
  'content_policy_violation',
  'invalid_request',
]

/**
 * The error for attempts of which none served: 400 when each refused the request itself, 429 when all were rate-limited,
 * 408 when all took too long or there was no time for any, 502 otherwise. Providers' own 401, 402 and bodies stay inside.
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
    'No provider was asked: the time of the request was over before all of it had arrived; ' +
    'send it faster, or have limits.total_ms of the routing configuration raised'
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

/** OpenAI's clients ask X-Should-Retry whether to send a request again that would only fail again. */
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
