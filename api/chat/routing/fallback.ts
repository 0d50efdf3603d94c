/** Tries one provider after another until one serves the request. */
import type { Log } from '../../process/log.ts'
import { Attempt } from './attempt.ts'
import type { Breakers } from './breaker.ts'
import type { ChatCall } from '../chat-call.ts'
import type { Target } from './candidates.ts'
import type { AttemptFailure } from './failure.ts'
import { noProviderAvailable, type FailedAttempt } from './no-provider.ts'
import { redact } from './redact.ts'
import type { ChatObserver } from '../observer.ts'
import type { AttemptRecord } from '../records/usage-record.ts'
import { asFailure } from '../upstream/reply-body.ts'

interface FallbackTools {
  readonly breakers: Breakers
  readonly observer: ChatObserver
  readonly log: Log
}

/** A request with its candidates. */
export interface Routed {
  readonly call: ChatCall
  readonly targets: readonly Target[]
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
  firstServing<Served>(routed: Routed, serve: Serve<Served>): Promise<readonly [Attempt, Served]>
  /** Ends an attempt that served; `failure` if it was cut. */
  ended(call: ChatCall, attempt: Attempt, failure?: AttemptFailure): void
}

/** The loop over candidates, with its breakers, observer and log. */
export function createFallback({ breakers, observer, log }: FallbackTools): Fallback {
  function ended(call: ChatCall, attempt: Attempt, failure?: AttemptFailure): AttemptRecord {
    const { model, provider } = attempt.target
    const record = call.ended(attempt, failure)
    const result = failure === undefined ? 'served' : failure.rule.harmless ? 'neutral' : 'failed'
    breakers.ended(attempt.trial, result, failure?.retryAfterSeconds)
    observer.attemptFinished({
      model,
      provider,
      outcome: failure?.errorType ?? 'served',
      ms: record.duration_ms,
    })
    if (failure === undefined || failure.kind === 'abandoned') return record
    log.warn({ request_id: call.requestId, ...factsOf(attempt, failure, record) }, 'provider did not serve')
    return record
  }

  function begin(call: ChatCall, target: Target, totalMs: number): Attempt {
    const attempt = new Attempt(target, breakers.began(target), totalMs - call.elapsedMs)
    call.began(attempt)
    return attempt
  }

  return {
    ended,
    async firstServing({ call, targets, totalMs }, serve) {
      const failed: FailedAttempt[] = []
      let open = breakers.order(targets)
      for (let target = open[0]; target !== undefined; target = open[0]) {
        if (call.hasLeft || call.elapsedMs >= totalMs) break
        const { model, provider } = target
        const others = open.filter((other) => other.model !== model)
        const attempt = begin(call, target, totalMs)
        try {
          return [attempt, await serve(attempt, others.length === 0)]
        } catch (error) {
          const failure = asFailure(error, attempt.signal)
          const { status } = ended(call, attempt, failure)
          failed.push({ candidate: { model, provider }, failure, status })
          open = failure.rule.endsModel ? others : open.slice(1)
          if (open.length > 0) observer.fellBack({ model, provider })
        }
      }
      throw noProviderAvailable(failed)
    },
  }
}

/** The log fields of a failure. */
function factsOf(
  { target }: Attempt,
  { kind, code, detail, cause }: AttemptFailure,
  { model, provider, status, duration_ms: ms }: AttemptRecord,
) {
  return {
    model,
    provider,
    kind,
    status,
    code,
    ms,
    ...(detail !== undefined && { detail: redact(detail, target.upstream.headers) }),
    ...(cause !== undefined && { err: cause }),
  }
}
