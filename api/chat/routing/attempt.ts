/** One attempt at a provider: its deadlines and its record. */
import type { Trial } from './breaker.ts'
import type { Target } from './candidates.ts'
import { AttemptFailure } from './failure.ts'
import type { AttemptRecord } from '../records/usage-record.ts'

export class Attempt {
  readonly target: Target
  readonly trial: Trial
  readonly #controller = new AbortController()
  readonly #began = performance.now()
  readonly #total: NodeJS.Timeout
  #silence: NodeJS.Timeout | undefined
  /** Until when keep-alives extend the deadline, on the clock of `performance`. */
  #prolongedUntil = Infinity
  #status: number | null = null
  #wasSuspended = false
  readonly #isCutShort: boolean

  /** Begins the attempt; `leftMs` is the remaining time of the request. */
  constructor(target: Target, trial: Trial, leftMs: number) {
    this.target = target
    this.trial = trial
    const { totalMs } = target.upstream.timeouts
    this.#isCutShort = leftMs < totalMs
    this.#total = setTimeout(() => this.abort(this.#outOfTime()), Math.min(totalMs, leftMs))
  }

  /** Aborts the attempt; its reason is the failure. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(failure: AttemptFailure): void {
    this.#controller.abort(failure)
  }

  /** A reply has begun. */
  answered(status: number): void {
    this.#status = status
  }

  /**
   * From here on a stream may be silent for `ms`: until its first token, or between two parts. Keep-alives extend that,
   * to `atMostMs` in all.
   */
  expectWithin(ms: number, atMostMs = Infinity): void {
    clearTimeout(this.#silence)
    this.#prolongedUntil = performance.now() + atMostMs - ms
    this.#silence = setTimeout(() => this.abort(new AttemptFailure('timeout')), ms)
  }

  /** The stream went on. */
  progressed(): void {
    if (this.#prolongedUntil === Infinity || performance.now() < this.#prolongedUntil)
      this.#silence?.refresh()
  }

  /** The stream is not being read, since the client is slow: silence is not the provider's. */
  suspend(): void {
    clearTimeout(this.#silence)
    this.#wasSuspended = true
  }

  /** Ends the attempt; returns its record. */
  end(failure: AttemptFailure | undefined): AttemptRecord {
    clearTimeout(this.#total)
    clearTimeout(this.#silence)
    return {
      model: this.target.model,
      provider: this.target.provider,
      status: failure?.status ?? this.#status,
      error_type: failure?.errorType ?? null,
      duration_ms: Math.round(performance.now() - this.#began),
    }
  }

  /** Time spent by the client or by earlier attempts is not the provider's. */
  #outOfTime(): AttemptFailure {
    if (this.#wasSuspended) return new AttemptFailure('notRead')
    return new AttemptFailure(this.#isCutShort ? 'outOfTime' : 'timeout')
  }
}
