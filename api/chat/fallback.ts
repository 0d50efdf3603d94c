/** Tries one provider after another until one serves the request. */
import type { Log } from '../process/log.ts'
import { ApiError } from '../http/errors.ts'
import { Attempt } from './attempt.ts'
import type { ChatCall } from './call.ts'
import type { Candidate } from './candidates.ts'
import type { AttemptFailure, ErrorType } from './failure.ts'
import type { ChatMetrics } from './metrics.ts'
import { isName } from './provider-error.ts'
import { asFailure } from './provider.ts'
import type { AttemptRecord } from './records.ts'
import { redact } from './redact.ts'

/** A request with its candidates. */
export interface RoutedCall {
  readonly call: ChatCall
  readonly candidates: readonly Candidate[]
  /** Maximum time of all attempts, in milliseconds. */
  readonly totalMs: number
}

/** Makes an attempt: resolves once the provider serves, or throws. `isLastModel`: no other model is left. */
type Serve<Served> = (attempt: Attempt, isLastModel: boolean) => Promise<Served>

export interface Fallback {
  /**
   * The first attempt that serves; the caller ends it with `ended`.
   * @throws {ApiError} if none does.
   */
  firstServing<Served>(routed: RoutedCall, serve: Serve<Served>): Promise<readonly [Attempt, Served]>
  /** Ends an attempt that served; `failure` if it was cut. */
  ended(call: ChatCall, attempt: Attempt, failure?: AttemptFailure): void
}

interface FallbackOptions {
  readonly metrics: ChatMetrics
  readonly log: Log
}

export function createFallback({ metrics, log }: FallbackOptions): Fallback {
  function ended(call: ChatCall, attempt: Attempt, failure?: AttemptFailure): AttemptRecord {
    const record = call.ended(attempt, failure)
    metrics.attemptFinished(record)
    if (failure === undefined || failure.kind === 'cancelled') return record
    const { breaker } = attempt.candidate.provider
    if (failure.rule.harmless !== true) breaker.failed(performance.now(), failure.facts.retryAfterSeconds)
    log.warn({ request_id: call.requestId, ...logged(attempt, failure, record) }, 'provider did not serve')
    return record
  }

  return {
    ended,
    async firstServing({ call, candidates, totalMs }, serve) {
      const failed: FailedAttempt[] = []
      for (const [place, candidate] of candidates.entries()) {
        if (call.isDisconnected || call.isCancelled || call.elapsedMs >= totalMs) break
        const last = failed.at(-1)
        if (last !== undefined) metrics.fellBack(last.record)
        candidate.provider.breaker.began(performance.now())
        const attempt = new Attempt(candidate, totalMs - call.elapsedMs)
        call.began(attempt)
        try {
          const isLastModel = candidates.slice(place).every(({ model }) => model === candidate.model)
          const served = await serve(attempt, isLastModel)
          candidate.provider.breaker.succeeded()
          return [attempt, served]
        } catch (error) {
          const failure = asFailure(error, attempt.signal)
          failed.push({ failure, record: ended(call, attempt, failure) })
        }
      }
      throw notServed(failed)
    },
  }
}

/** The log fields of a failure. */
function logged(
  { candidate }: Attempt,
  { kind, facts: { code, detail, cause } }: AttemptFailure,
  { model, provider, status, duration_ms: ms }: AttemptRecord,
) {
  const facts = { model, provider, kind, status, code, ms }
  return {
    ...facts,
    ...(detail !== undefined && { detail: redact(detail, candidate.provider.headers) }),
    ...(cause !== undefined && { err: cause }),
  }
}

interface FailedAttempt {
  readonly failure: AttemptFailure
  readonly record: AttemptRecord
}

/** Delays clients that retry by themselves, some for an hour. */
const RETRY_AFTER_SECONDS = 5

/** The most useful error for the caller comes first: agents shorten their context and retry. */
const REFUSALS: readonly ErrorType[] = [
  'context_length_exceeded',
  'payload_too_large',
  'content_policy_violation',
  'invalid_request',
]

/**
 * The error for failed attempts (CONTRACT 6): 400 if each rejected the request itself, 429 if all were rate-limited, 408
 * if all timed out or no time was left, otherwise 502. Providers' own 401, 402 and bodies are never passed on.
 */
function notServed(attempts: readonly FailedAttempt[]): ApiError {
  if (attempts.length === 0) return noTimeLeft()
  const status = statusOf(attempts)
  const errorType = errorTypeOf(status, attempts)
  const sentences = attempts.map(
    ({ failure, record }) => `${record.provider} (${record.model}) ${failure.message}`,
  )
  return new ApiError(status, `No provider served the request: ${sentences.join('; ')}`, {
    metadata: {
      error_type: errorType,
      ...(status === 400 && refusedPart(errorType, attempts)),
      provider_name: attempts.at(-1)?.record.provider ?? null,
      previous_errors: attempts.map(({ failure, record }) => ({
        model: record.model,
        provider_name: record.provider,
        code: record.status,
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

/** The provider's own code, and the parameter that it rejects. */
function refusedPart(errorType: ErrorType, attempts: readonly FailedAttempt[]) {
  const { code, param } = attempts.find(({ failure }) => failure.errorType === errorType)?.failure.facts ?? {}
  return { ...(param !== undefined && { param }), ...(isName(code) && { code }) }
}

/** OpenAI's clients read X-Should-Retry to decide whether to resend a request. */
function retryHeaders(status: number, attempts: readonly FailedAttempt[]): Record<string, string> {
  const areUsedUp = attempts.every(({ failure }) => failure.kind === 'quota')
  if (status === 400 || areUsedUp) return { 'X-Should-Retry': 'false' }
  if (status === 408) return {}
  const delays = attempts
    .map(({ failure }) => failure.facts.retryAfterSeconds)
    .filter((one) => one !== undefined)
  const seconds = status === 429 && delays.length > 0 ? Math.max(1, Math.min(...delays)) : RETRY_AFTER_SECONDS
  return { 'Retry-After': String(seconds) }
}
