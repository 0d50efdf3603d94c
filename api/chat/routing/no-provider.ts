/** What a caller is told when no provider served its request (CONTRACT 6). */
import { ApiError } from '../../http/errors.ts'
import type { AttemptFailure, ErrorType } from './failure.ts'
import type { Candidate } from '../observer.ts'

/** A candidate that failed, and why. */
export interface FailedAttempt {
  readonly candidate: Candidate
  readonly failure: AttemptFailure
}

// Clients try again by themselves, some for an hour: these keep them from doing it at once.
const RETRY_AFTER_SECONDS = 5
const RETRY_REFUSED_SECONDS = 60

/**
 * The error for attempts of which none served: 429 when all were rate-limited, 408 when all took too long or there was
 * no time for any, 502 otherwise. Providers' own 401, 402 and bodies stay inside.
 */
export function noneServed(attempts: readonly FailedAttempt[]): ApiError {
  if (attempts.length === 0) return noTimeLeft()
  const types = new Set(attempts.map(({ failure }) => failure.errorType))
  const [only] = types.size === 1 ? types : []
  const last = attempts.at(-1)
  const status = only === 'rate_limit_exceeded' ? 429 : only === 'timeout' ? 408 : 502
  return new ApiError(status, describe(attempts), {
    metadata: {
      error_type: status === 502 ? errorTypeOf502(attempts) : only,
      provider_name: last?.candidate.provider ?? null,
      previous_errors: attempts.map(({ candidate, failure }) => ({
        model: candidate.model,
        provider_name: candidate.provider,
        code: failure.status,
        error_type: failure.errorType,
      })),
    },
    headers: {
      ...(status === 408 ? {} : { 'Retry-After': String(retryAfter(status, attempts)) }),
      // The same request would be refused again; OpenAI's clients ask this header whether to send it.
      ...(isRefused(attempts) ? { 'X-Should-Retry': 'false' } : {}),
    },
  })
}

function noTimeLeft(): ApiError {
  const message =
    'No provider was asked: the time of the request was over before all of it had arrived; ' +
    'send it faster, or have limits.total_ms of the routing configuration raised'
  const metadata = { error_type: 'timeout', provider_name: null, previous_errors: [] }
  return new ApiError(408, message, { metadata })
}

/** The request itself was refused only where every provider said so; otherwise they are what failed. */
function errorTypeOf502(attempts: readonly FailedAttempt[]): ErrorType {
  const areRefusals = attempts.every(({ failure }) => failure.rule.endsModel)
  return areRefusals ? (attempts.at(-1)?.failure.errorType ?? 'provider_unavailable') : 'provider_unavailable'
}

/** Whether each provider refused the request; one whose answer nobody waited for refused nothing. */
function isRefused(attempts: readonly FailedAttempt[]): boolean {
  return attempts.every(({ failure }) => failure.rule.endsModel && failure.kind !== 'abandoned')
}

function retryAfter(status: number, attempts: readonly FailedAttempt[]): number {
  if (isRefused(attempts)) return RETRY_REFUSED_SECONDS
  const told = attempts
    .map(({ failure }) => failure.retryAfterSeconds)
    .filter((seconds) => seconds !== undefined)
  return status === 429 && told.length > 0 ? Math.max(1, Math.min(...told)) : RETRY_AFTER_SECONDS
}

function describe(attempts: readonly FailedAttempt[]): string {
  const sentences = attempts.map(
    ({ candidate, failure }) => `${candidate.provider} (${candidate.model}) ${failure.message}`,
  )
  return `No provider served the request: ${sentences.join('; ')}`
}
