/** One attempt at a provider: its deadlines and its record. */
import type { Candidate } from './candidates.ts'
import { AttemptFailure } from './failure.ts'
import type { AttemptRecord } from './records.ts'

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
  /** Since when the stream is not being read, and for how long it was not before, in milliseconds. */
  #suspendedAt: number | undefined
  #suspendedMs = 0

  /** Begins the attempt; `leftMs` is the remaining time of the request. */
  constructor(candidate: Candidate, leftMs: number) {
    this.candidate = candidate
    const { total_ms: totalMs } = candidate.provider.timeouts
    this.#total = setTimeout(() => this.abort(this.#outOfTime(leftMs < totalMs)), Math.min(totalMs, leftMs))
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
    this.#resume()
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
    this.#suspendedAt ??= performance.now()
  }

  /** Ends the attempt; returns its record. */
  end(failure: AttemptFailure | undefined): AttemptRecord {
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

  #resume(): void {
    if (this.#suspendedAt !== undefined) this.#suspendedMs += performance.now() - this.#suspendedAt
    this.#suspendedAt = undefined
  }

  /** Time spent by the client or by earlier attempts is not the provider's. */
  #outOfTime(isCutShort: boolean): AttemptFailure {
    const isSuspended = this.#suspendedAt !== undefined
    this.#resume()
    const isClientSlow = isSuspended || this.#suspendedMs > (performance.now() - this.#began) / 2
    if (isClientSlow) return new AttemptFailure('notRead')
    return new AttemptFailure(isCutShort ? 'outOfTime' : 'timeout')
  }
}
