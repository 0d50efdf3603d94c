/** One chat request from its arrival to its record. */
import type { AppOf } from './apps/attribution.ts'
import type { Attempt } from './routing/attempt.ts'
import { AttemptFailure } from './routing/failure.ts'
import type { Candidate } from './observer.ts'
import type { AttemptRecord, RecordUsage, UsageRecord } from './records/usage-record.ts'
import type { Usage } from './protocol/usage.ts'

interface CallFacts {
  readonly requestId: string
  readonly accountId: string
  readonly arrivedAt: Date
  /** Returns the app that the request counts for, once it is known whether a provider served it. */
  readonly appId: AppOf
  /** Called with that app as soon as it is certain. */
  readonly onAttributed: (appId: number) => void
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

/** The recorded status of a caller that left before it received one (nginx's 499). */
export const STATUS_LEFT = 499

export class ChatCall {
  readonly requestId: string
  readonly arrivedAt: Date
  isStream = false
  readonly #facts: CallFacts
  readonly #record: RecordUsage
  readonly #began = performance.now()
  readonly #attempts: AttemptRecord[] = []
  #appId: Promise<number> | undefined
  #current: Attempt | undefined
  #firstTokenMs: number | null = null
  #hasLeft = false
  #isAbandoned = false
  #isRecorded = false

  constructor(facts: CallFacts, record: RecordUsage) {
    this.requestId = facts.requestId
    this.arrivedAt = facts.arrivedAt
    this.#facts = facts
    this.#record = record
  }

  get attempts(): readonly AttemptRecord[] {
    return this.#attempts
  }

  /** Milliseconds since it arrived. */
  get elapsedMs(): number {
    return Math.round(performance.now() - this.#began)
  }

  /** Whether the caller hung up: then no further attempt is made. */
  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** The caller hung up. The attempt in progress goes on, so that its usage is known. */
  leave(): void {
    this.#hasLeft = true
  }

  /** Ends the attempt in progress. */
  abandon(): void {
    this.#isAbandoned = true
    this.#current?.abort(new AttemptFailure('abandoned'))
  }

  began(attempt: Attempt): void {
    this.#current = attempt
    if (this.#isAbandoned) this.abandon()
  }

  /** Resolves with the app that the request counts for; `isServed`: a provider serves it. */
  async attribute(isServed: boolean): Promise<number> {
    this.#appId ??= this.#facts.appId(isServed)
    const appId = await this.#appId
    this.#facts.onAttributed(appId)
    return appId
  }

  /** The first meaningful token arrived: a provider serves the request. */
  async reachedFirstToken(): Promise<void> {
    this.#firstTokenMs ??= this.elapsedMs
    await this.attribute(true)
  }

  /** The attempt is over; returns its record. */
  ended(attempt: Attempt, failure?: AttemptFailure): AttemptRecord {
    const record = attempt.end(failure)
    this.#attempts.push(record)
    this.#current = undefined
    return record
  }

  /** Writes the one usage record of this request. A second call does nothing. */
  async finish(ending: Ending): Promise<UsageRecord | undefined> {
    if (this.#isRecorded) return undefined
    this.#isRecorded = true
    const { served, usage } = ending
    const record: UsageRecord = {
      ts: this.arrivedAt.toISOString(),
      request_id: this.requestId,
      app_id: await this.attribute(served !== undefined),
      ...tokensOf(usage),
      requests: served === undefined ? 0 : 1,
      model: served?.model ?? null,
      provider: served?.provider ?? null,
      account_id: this.#facts.accountId,
      stream: this.isStream,
      status: ending.status,
      outcome: ending.outcome,
      usage_missing: this.#usageMissing(ending),
      first_token_ms: this.#firstTokenMs,
      duration_ms: this.elapsedMs,
      attempts: this.#attempts,
    }
    await this.#record(record)
    return record
  }

  #usageMissing({ served, usage, failure }: Ending): string | null {
    if (usage !== undefined) return null
    if (served === undefined) return 'no provider served the request'
    if (failure === undefined) return 'the provider reported none'
    if (failure.kind !== 'abandoned') return `the provider ${failure.message}`
    const end = this.#hasLeft ? 'the caller left' : 'the service stopped'
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
