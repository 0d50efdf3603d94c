/**
 * The circuit breaker of one provider of one model. While it is open, the provider is tried after the others of its
 * model, but never left out: a request is served even when all breakers are open. Times are milliseconds of a
 * monotonic clock.
 */

/** Failures in a row that open it. */
const IN_A_ROW = 3
/** It also opens when half of its last attempts failed. */
const REMEMBERED = 10
/** How long it stays open by default, and at most if the provider names a time. */
const OPEN_MS = 30_000
const OPEN_MS_AT_MOST = 300_000

export class Breaker {
  /** The last attempts, the newest last: whether they failed. */
  #failures: boolean[] = []
  /** Undefined while closed. After that time, one request at a time probes whether it may close. */
  #openUntil: number | undefined

  get isOpen(): boolean {
    return this.#openUntil !== undefined
  }

  /** Whether the provider is tried last. */
  isLast(now: number): boolean {
    return this.#openUntil !== undefined && now < this.#openUntil
  }

  /** An attempt begins: if it probes an open breaker, other requests try the provider last meanwhile. */
  began(now: number): void {
    if (this.#openUntil !== undefined && now >= this.#openUntil) this.#openUntil = now + OPEN_MS
  }

  /** The provider serves: its first token arrived. */
  succeeded(): void {
    this.#openUntil = undefined
    this.#remember(false)
  }

  /** An attempt failed; `retryAfterSeconds` is the provider's own value. */
  failed(now: number, retryAfterSeconds?: number): void {
    this.#remember(true)
    const latest = this.#failures.slice(-IN_A_ROW)
    const isFailing =
      this.isOpen ||
      (latest.length === IN_A_ROW && latest.every(Boolean)) ||
      this.#failures.filter(Boolean).length >= REMEMBERED / 2
    if (!isFailing && retryAfterSeconds === undefined) return
    const ms = Math.min((retryAfterSeconds ?? 0) * 1000, OPEN_MS_AT_MOST) || OPEN_MS
    this.#openUntil = Math.max(this.#openUntil ?? 0, now + ms)
    this.#failures = []
  }

  #remember(failed: boolean): void {
    this.#failures = [...this.#failures, failed].slice(-REMEMBERED)
  }
}
