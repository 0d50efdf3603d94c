/** One chat request from its arrival to its usage record. */
import type { Caller, Reply } from '../http/call.ts'
import { Attempt, type Candidate } from './attempt.ts'
import { Completion, type ReplyIdentity } from './completion.ts'
import { AttemptFailure } from './failures.ts'
import type { AttemptRecord, UsageRecord } from './records.ts'
import type { ChatRequest, NamedApp } from './request.ts'
import { tokenColumns } from './usage.ts'

interface CallFacts {
  readonly requestId: string
  readonly caller: Caller
  readonly arrivedAt: Date
  readonly app: NamedApp
}

/** How a request ended. */
export interface Ending {
  readonly outcome: 'completed' | 'cut' | 'failed'
  /** HTTP status for a caller that received none so far. */
  readonly status: number
  /** The attempt that served it, whole or in part. */
  readonly served?: Attempt
}

/** The recorded status of a client that disconnected before it received one (nginx's 499). */
const STATUS_DISCONNECTED = 499

export class ChatCall {
  readonly facts: CallFacts
  readonly reply: Reply
  readonly attempts: AttemptRecord[] = []
  /** Undefined until its body was read. */
  request: ChatRequest | undefined
  /** Whether the client disconnected: then no further attempt is made. */
  isDisconnected = false
  readonly #began = performance.now()
  /** Whether its attempt was ended; no other follows. */
  #isCancelled = false
  #current: Attempt | undefined
  #firstTokenMs: number | null = null
  #isRecorded = false

  constructor(facts: CallFacts, reply: Reply) {
    this.facts = facts
    this.reply = reply
  }

  /** Whether another attempt may follow. */
  get goesOn(): boolean {
    return !this.isDisconnected && !this.#isCancelled
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
    this.#isCancelled = true
    this.#current?.abort(new AttemptFailure('cancelled'))
  }

  /** Begins an attempt; `leftMs` is the remaining time. */
  begin(candidate: Candidate, leftMs: number): Attempt {
    const completion = new Completion(this.identity(candidate), this.request?.body['n'])
    this.#current = new Attempt(candidate, completion, leftMs)
    return this.#current
  }

  /** The identity of its reply as long as the provider gives none. */
  identity({
    model,
    provider,
  }: {
    readonly model: string
    readonly provider: { name: string }
  }): ReplyIdentity {
    const { requestId, arrivedAt } = this.facts
    const created = Math.floor(arrivedAt.getTime() / 1000)
    return { id: `gen-${requestId}`, created, model, provider: provider.name }
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
  finish({ outcome, status, served }: Ending): UsageRecord | undefined {
    if (this.#isRecorded) return undefined
    this.#isRecorded = true
    const { requestId, arrivedAt, caller, app } = this.facts
    const unsent = this.isDisconnected ? STATUS_DISCONNECTED : status
    return {
      ts: arrivedAt.toISOString(),
      request_id: requestId,
      ...app.columns,
      ...tokenColumns(served?.completion.usage),
      requests: served === undefined ? 0 : 1,
      model: served?.candidate.model ?? null,
      provider: served?.candidate.provider.name ?? null,
      account_id: caller.accountId,
      stream: this.request?.stream === true,
      status: this.reply.headersSent ? 200 : unsent,
      outcome: this.isDisconnected ? 'left' : outcome,
      usage_missing: this.#usageMissing(served),
      first_token_ms: this.#firstTokenMs,
      duration_ms: this.elapsedMs,
      attempts: this.attempts,
    }
  }

  #usageMissing(served: Attempt | undefined): string | null {
    if (served === undefined) return 'no provider served the request'
    const { failure, usage } = served.completion
    if (usage !== undefined) return null
    if (failure === undefined) return 'the provider reported none'
    if (failure.kind !== 'cancelled') return `the provider ${failure.message}`
    const end = this.isDisconnected ? 'the client disconnected' : 'the service stopped'
    return `${end}, and the reply was not read to its end`
  }
}
