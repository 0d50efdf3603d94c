/** One chat request from its arrival to its record, and its attempts at providers. */
import type { Caller } from '../http/call.ts'
import type { NamedApp } from './app.ts'
import type { Provider } from './configuration.ts'
import { AttemptFailure } from './failures.ts'
import type { AttemptRecord, UsageRecord } from './records.ts'
import type { Usage } from './usage.ts'

/** A model, by its name in the configuration, and one of its providers. */
export interface Candidate {
  readonly model: string
  readonly provider: Provider
}

/** One try at one provider, with its deadlines. */
export class Attempt {
  readonly candidate: Candidate
  /** HTTP status of the provider; null without a reply. */
  status: number | null = null
  readonly #controller = new AbortController()
  readonly #began = performance.now()
  readonly #total: NodeJS.Timeout
  #silence: NodeJS.Timeout | undefined
  /** Until when keep-alives extend the deadline. */
  #extendedUntil = Infinity
  #isSuspended = false

  /** Begins the attempt; `leftMs` is the remaining time of the request. */
  constructor(candidate: Candidate, leftMs: number) {
    this.candidate = candidate
    const { total_ms: totalMs } = candidate.provider.timeouts
    const late = leftMs < totalMs ? 'outOfTime' : 'timeout'
    const end = () => this.abort(new AttemptFailure(this.#isSuspended ? 'notRead' : late))
    this.#total = setTimeout(end, Math.min(totalMs, leftMs))
  }

  /** Aborts the attempt; its reason is the failure. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(failure: AttemptFailure): void {
    this.#controller.abort(failure)
  }

  /**
   * From here on a stream may be silent for `ms`: until its first token, or between two parts. Keep-alives extend that,
   * to `atMostMs` in all.
   */
  expectWithin(ms: number, atMostMs = Infinity): void {
    clearTimeout(this.#silence)
    this.#isSuspended = false
    this.#extendedUntil = performance.now() + atMostMs - ms
    this.#silence = setTimeout(() => this.abort(new AttemptFailure('timeout')), ms)
  }

  /** The stream went on. */
  progressed(): void {
    if (performance.now() < this.#extendedUntil) this.#silence?.refresh()
  }

  /** The stream is not being read, since the client is slow: silence is not the provider's. */
  suspend(): void {
    clearTimeout(this.#silence)
    this.#isSuspended = true
  }

  /** Ends the attempt; returns its record. */
  end(failure?: AttemptFailure): AttemptRecord {
    clearTimeout(this.#total)
    clearTimeout(this.#silence)
    return {
      model: this.candidate.model,
      provider: this.candidate.provider.name,
      status: failure?.facts.status ?? this.status,
      error_type: failure?.errorType ?? null,
      duration_ms: Math.round(performance.now() - this.#began),
    }
  }
}

interface CallFacts {
  readonly requestId: string
  readonly caller: Caller
  readonly arrivedAt: Date
  readonly app: NamedApp
}

/** How a request ended. */
export interface Ending {
  readonly outcome: UsageRecord['outcome']
  /** HTTP status sent to the caller. */
  readonly status: number
  /** The provider that served it, whole or in part. */
  readonly served?: Candidate
  readonly usage?: Usage | undefined
  /** Why the response of that provider is incomplete. */
  readonly failure?: AttemptFailure | undefined
}

/** The recorded status of a client that disconnected before it received one (nginx's 499). */
export const STATUS_DISCONNECTED = 499

export class ChatCall {
  readonly facts: CallFacts
  readonly attempts: AttemptRecord[] = []
  isStream = false
  /** Whether the client disconnected: then no further attempt is made. */
  isDisconnected = false
  /** Whether its attempt was ended; no other follows. */
  isCancelled = false
  readonly #began = performance.now()
  #current: Attempt | undefined
  #firstTokenMs: number | null = null
  #isRecorded = false

  constructor(facts: CallFacts) {
    this.facts = facts
  }

  /** Milliseconds since it arrived. */
  get elapsedMs(): number {
    return Math.round(performance.now() - this.#began)
  }

  /** Whether the reply of the attempt in progress is read to its end for its usage, though nobody waits for it. */
  get finishesAlone(): boolean {
    return this.#current?.candidate.provider.on_leave === 'finish'
  }

  cancel(): void {
    this.isCancelled = true
    this.#current?.abort(new AttemptFailure('cancelled'))
  }

  /** Begins an attempt; `leftMs` is the remaining time. */
  begin(candidate: Candidate, leftMs: number): Attempt {
    this.#current = new Attempt(candidate, leftMs)
    return this.#current
  }

  /** The first meaningful token arrived. */
  reachedFirstToken(): void {
    this.#firstTokenMs = this.elapsedMs
  }

  /** The attempt is over; returns its record. */
  ended(attempt: Attempt, failure?: AttemptFailure): AttemptRecord {
    const record = attempt.end(failure)
    this.attempts.push(record)
    this.#current = undefined
    return record
  }

  /** The one usage record of this request; undefined for a second call. */
  finish(ending: Ending): UsageRecord | undefined {
    if (this.#isRecorded) return undefined
    this.#isRecorded = true
    const { served, usage, outcome, status } = ending
    const { requestId, arrivedAt, caller, app } = this.facts
    return {
      ts: arrivedAt.toISOString(),
      request_id: requestId,
      // The nightly run derives the id from the address or name.
      ...(app.app === null
        ? { app_id: app.id }
        : { app: app.app, app_title: app.title, app_categories: app.categories }),
      ...tokensOf(usage),
      requests: served === undefined ? 0 : 1,
      model: served?.model ?? null,
      provider: served?.provider.name ?? null,
      account_id: caller.accountId,
      stream: this.isStream,
      status,
      outcome,
      usage_missing: this.#usageMissing(ending),
      first_token_ms: this.#firstTokenMs,
      duration_ms: this.elapsedMs,
      attempts: this.attempts,
    }
  }

  #usageMissing({ served, usage, failure }: Ending): string | null {
    if (usage !== undefined) return null
    if (served === undefined) return 'no provider served the request'
    if (failure === undefined) return 'the provider reported none'
    if (failure.kind !== 'cancelled') return `the provider ${failure.message}`
    const end = this.isDisconnected ? 'the client disconnected' : 'the service stopped'
    return `${end}, and the reply was not read to its end`
  }
}

function tokensOf(usage: Usage | undefined) {
  return {
    prompt_tokens: usage?.promptTokens ?? null,
    completion_tokens: usage?.completionTokens ?? null,
    reasoning_tokens: usage?.reasoningTokens ?? null,
    cached_tokens: usage?.cachedTokens ?? null,
  }
}
