/**
 * The circuit breaker of one provider of one model. While it is open, the provider is tried after the others of its
 * model, but never left out: a request is served even when all breakers are open. Times are milliseconds of a
 * monotonic clock.
 */

/** It opens after so many failures in a row, or when half of its last attempts failed. */
const IN_A_ROW = 3
const REMEMBERED = 10
/** How long it stays open by default, and at most if the provider names a time. */
const OPEN_MS = 30_000
const OPEN_MS_AT_MOST = 300_000

export class Breaker {
  /** Whether the last attempts failed, the newest last. */
  #failures: readonly boolean[] = []
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
    this.#failures = [...this.#failures, false].slice(-REMEMBERED)
  }

  /** An attempt failed; `retryAfterSeconds` is the provider's own value. */
  failed(now: number, retryAfterSeconds?: number): void {
    const failures = [...this.#failures, true].slice(-REMEMBERED)
    const hasFailedInARow = failures.length >= IN_A_ROW && !failures.slice(-IN_A_ROW).includes(false)
    const isFailing = hasFailedInARow || failures.filter(Boolean).length >= REMEMBERED / 2
    this.#failures = failures
    if (!isFailing && !this.isOpen && retryAfterSeconds === undefined) return
    const ms = Math.min((retryAfterSeconds ?? 0) * 1000, OPEN_MS_AT_MOST) || OPEN_MS
    this.#openUntil = Math.max(this.#openUntil ?? 0, now + ms)
    this.#failures = []
  }
}
