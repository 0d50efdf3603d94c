/**
 * Circuit breakers, one per provider and model: a failing candidate is tried last for a while, but never left out. So a
 * request is served even when all breakers are open. "Last" is among the providers of its model: the caller decides the
 * order of models (CONTRACT 6).
 */
import type { ChatObserver, Candidate } from '../observer.ts'

interface BreakerRules {
  /** Length of the window, in milliseconds. */
  readonly windowMs: number
  /** Minimum number of attempts in the window. */
  readonly minimum: number
  /** Share of failures that opens the breaker. */
  readonly failedShare: number
  /** Failures in a row that open it at once. */
  readonly inARow: number
  /** How long a breaker stays open by default, and at most if the provider names a time. */
  readonly openMs: number
  readonly openMsAtMost: number
}

/** The default rules. */
export const BREAKER_RULES: BreakerRules = {
  windowMs: 30_000,
  minimum: 5,
  failedShare: 0.5,
  inARow: 3,
  openMs: 30_000,
  openMsAtMost: 300_000,
}

/** The end of an attempt for the breaker: `neutral` shows nothing about the provider's health. */
export type AttemptResult = 'served' | 'failed' | 'neutral'

export interface Trial {
  readonly candidate: Candidate
  /** How often the breaker had opened when the attempt began. */
  readonly openings: number
}

export interface Breakers {
  /** The candidates in the order to try them: the open ones of each model come last. */
  order<Item extends Candidate>(candidates: readonly Item[]): readonly Item[]
  /** An attempt begins; pass the result to `ended`. */
  began(candidate: Candidate): Trial
  /** It ended. `retryAfterSeconds` is the provider's own value. */
  ended(trial: Trial, result: AttemptResult, retryAfterSeconds?: number): void
  /**
   * Drops all other candidates, since they were removed from the configuration; their open breakers are reported as
   * closed.
   */
  keepOnly(candidates: readonly Candidate[]): void
}

/** Breakers over all candidates. `now` is a monotonic clock in milliseconds. */
export function createBreakers(
  observer: Pick<ChatObserver, 'breakerChanged'>,
  { rules = BREAKER_RULES, now = () => performance.now() }: { rules?: BreakerRules; now?: () => number } = {},
): Breakers {
  const breakers = new Map<string, Breaker>()

  function breakerOf(candidate: Candidate): Breaker {
    const key = keyOf(candidate)
    const breaker = breakers.get(key) ?? new Breaker(candidate, rules)
    breakers.set(key, breaker)
    return breaker
  }

  function notify({ model, provider }: Candidate, open: boolean): void {
    observer.breakerChanged({ model, provider, open })
  }

  return {
    order(candidates) {
      const last = new Set(candidates.filter((candidate) => breakerOf(candidate).isLast(now())))
      if (last.size === 0) return candidates
      const models = [...Map.groupBy(candidates, ({ model }) => model).values()]
      return models.flatMap((providers) => [
        ...providers.filter((candidate) => !last.has(candidate)),
        ...providers.filter((candidate) => last.has(candidate)),
      ])
    },
    began: (candidate) => breakerOf(candidate).began(candidate, now()),
    ended(trial, result, retryAfterSeconds) {
      const breaker = breakers.get(keyOf(trial.candidate))
      if (breaker === undefined) return
      const wasOpen = breaker.isOpen
      breaker.ended(trial, now(), { result, retryAfterSeconds })
      if (breaker.isOpen !== wasOpen) notify(breaker.candidate, breaker.isOpen)
    },
    keepOnly(candidates) {
      const configured = new Set(candidates.map(keyOf))
      for (const [key, breaker] of breakers) {
        if (configured.has(key)) continue
        breakers.delete(key)
        if (breaker.isOpen) notify(breaker.candidate, false)
      }
    },
  }
}

// Neither name can hold a space.
function keyOf({ model, provider }: Candidate): string {
  return `${provider} ${model}`
}

/** Attempts of one second. */
interface Second {
  readonly second: number
  served: number
  failed: number
}

interface Outcome {
  readonly result: AttemptResult
  readonly retryAfterSeconds: number | undefined
}

/** The breaker of one candidate. Times are milliseconds of the same clock. */
class Breaker {
  readonly candidate: Candidate
  readonly #rules: BreakerRules
  #seconds: Second[] = []
  #failedInARow = 0
  /** Undefined while closed. After that time, one attempt at a time probes whether it may close. */
  #openUntil: number | undefined
  #probe: Trial | undefined
  #openings = 0

  constructor({ model, provider }: Candidate, rules: BreakerRules) {
    this.candidate = { model, provider }
    this.#rules = rules
  }

  get isOpen(): boolean {
    return this.#openUntil !== undefined
  }

  isLast(now: number): boolean {
    return this.#openUntil !== undefined && (this.#probe !== undefined || now < this.#openUntil)
  }

  began(candidate: Candidate, now: number): Trial {
    const trial = { candidate, openings: this.#openings }
    if (this.#openUntil !== undefined && now >= this.#openUntil) this.#probe ??= trial
    return trial
  }

  ended(trial: Trial, now: number, { result, retryAfterSeconds }: Outcome): void {
    if (trial === this.#probe) this.#probe = undefined
    if (result === 'neutral') return
    if (result === 'failed' && retryAfterSeconds !== undefined) {
      return this.#open(now, retryAfterSeconds * 1000)
    }
    // An attempt from before the opening, such as a long stream, shows an earlier state of the provider.
    if (trial.openings !== this.#openings) return
    this.#count(now, result)
    if (result === 'served') this.#openUntil = undefined
    else if (this.isOpen || this.#isFailing) this.#open(now, this.#rules.openMs)
  }

  #open(now: number, ms: number): void {
    this.#openUntil = now + Math.min(ms, this.#rules.openMsAtMost)
    this.#openings += 1
    this.#seconds = []
  }

  #count(now: number, result: 'served' | 'failed'): void {
    const second = Math.floor(now / 1000)
    const last = this.#seconds.at(-1)
    if (last?.second === second) last[result] += 1
    else this.#seconds.push({ second, served: 0, failed: 0, [result]: 1 })
    const oldest = second - Math.ceil(this.#rules.windowMs / 1000)
    while ((this.#seconds[0]?.second ?? second) < oldest) this.#seconds.shift()
    this.#failedInARow = result === 'failed' ? this.#failedInARow + 1 : 0
  }

  get #isFailing(): boolean {
    if (this.#failedInARow >= this.#rules.inARow) return true
    const failed = this.#seconds.reduce((sum, second) => sum + second.failed, 0)
    const all = this.#seconds.reduce((sum, second) => sum + second.failed + second.served, 0)
    return all >= this.#rules.minimum && failed / all >= this.#rules.failedShare
  }
}
