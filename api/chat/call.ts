/** One chat request from its arrival to its record. */
import type { NamedApp } from './app.ts'
import type { Attempt } from './attempt.ts'
import type { Candidate } from './candidates.ts'
import { AttemptFailure } from './failure.ts'
import type { AttemptRecord, UsageRecord } from './records.ts'
import type { Usage } from './usage.ts'
import type { Caller } from '../http/call.ts'

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
  readonly requestId: string
  readonly caller: Caller
  readonly arrivedAt: Date
  readonly app: NamedApp
  readonly attempts: AttemptRecord[] = []
  isStream = false
  readonly #began = performance.now()
  #current: Attempt | undefined
  #firstTokenMs: number | null = null
  #isDisconnected = false
  #isCancelled = false
  #isRecorded = false

  constructor({ requestId, caller, arrivedAt, app }: CallFacts) {
    this.requestId = requestId
    this.arrivedAt = arrivedAt
    this.app = app
    this.caller = caller
  }

  /** Milliseconds since it arrived. */
  get elapsedMs(): number {
    return Math.round(performance.now() - this.#began)
  }

  /** Whether the client disconnected: then no further attempt is made. */
  get isDisconnected(): boolean {
    return this.#isDisconnected
  }

  get isCancelled(): boolean {
    return this.#isCancelled
  }

  /** Whether the reply of the attempt in progress is read to its end for its usage, though nobody waits for it. */
  get finishesAlone(): boolean {
    return this.#current?.candidate.provider.on_leave === 'finish'
  }

  disconnected(): void {
    this.#isDisconnected = true
  }

  /** Ends the attempt in progress; no other follows. */
  cancel(): void {
    this.#isCancelled = true
    this.#current?.abort(new AttemptFailure('cancelled'))
  }

  began(attempt: Attempt): void {
    this.#current = attempt
  }

  /** The first meaningful token arrived. */
  reachedFirstToken(): void {
    this.#firstTokenMs ??= this.elapsedMs
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
    const { served, usage } = ending
    return {
      ts: this.arrivedAt.toISOString(),
      request_id: this.requestId,
      ...recordedApp(this.app),
      ...tokensOf(usage),
      requests: served === undefined ? 0 : 1,
      model: served?.model ?? null,
      provider: served?.provider.name ?? null,
      account_id: this.caller.accountId,
      stream: this.isStream,
      status: ending.status,
      outcome: ending.outcome,
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
    const end = this.#isDisconnected ? 'the client disconnected' : 'the service stopped'
    return `${end}, and the reply was not read to its end`
  }
}

/** The nightly run derives the id from the address or name. */
function recordedApp({ id, app, title, categories }: NamedApp) {
  return app === null ? { app_id: id } : { app, app_title: title, app_categories: categories }
}

function tokensOf(usage: Usage | undefined) {
  return {
    prompt_tokens: usage?.promptTokens ?? null,
    completion_tokens: usage?.completionTokens ?? null,
    reasoning_tokens: usage?.reasoningTokens ?? null,
    cached_tokens: usage?.cachedTokens ?? null,
  }
}
