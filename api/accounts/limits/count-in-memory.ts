/**
 * Counts requests where the database runs inside the process: what is used is kept in memory, and looked up again once
 * anybody else has changed anything. What the requests of one turn of the event loop use is written as one
 * transaction before any of them is answered, so a crash loses no count and other processes see each.
 */
import type { Caller } from '../../http/call.ts'
import type { AtOnce, Store } from '../../store/store.ts'
import type { Verdict } from './policies.ts'
import { QuotaBooks } from './quota-books.ts'
import type { RateLimiter } from './rate-limits.ts'

/** A request that waits for its verdict. */
interface Waiting {
  readonly kind: 'take' | 'peek'
  readonly caller: Caller
  readonly now: number
  readonly resolve: (verdict: Verdict) => void
  readonly reject: (error: unknown) => void
}

/** The rate limiter over a store that offers `atOnce`. */
export class MemoryLimiter implements RateLimiter {
  readonly #atOnce: AtOnce
  readonly #version: Store['version']
  readonly #books = new QuotaBooks()
  /** The version of the store that the books agree with. */
  #known: string | undefined
  #waiting: Waiting[] = []
  #isSettling = false

  constructor(atOnce: AtOnce, version: Store['version']) {
    this.#atOnce = atOnce
    this.#version = version
  }

  take(caller: Caller, now: Date): Promise<Verdict> {
    const time = now.getTime()
    // Until its window ends nobody is given anything back: a client past its limits costs no writing.
    const verdict = this.#fromMemory(caller, time)
    return verdict?.exhausted === undefined ? this.#ask('take', caller, time) : Promise.resolve(verdict)
  }

  async peek(caller: Caller, now: Date): Promise<Verdict> {
    const time = now.getTime()
    return this.#fromMemory(caller, time) ?? (await this.#ask('peek', caller, time))
  }

  #fromMemory(caller: Caller, now: number): Verdict | undefined {
    const isKnown = this.#known !== undefined && this.#known === this.#version() && this.#books.knows(caller)
    return isKnown ? this.#books.verdict(caller, now) : undefined
  }

  #ask(kind: Waiting['kind'], caller: Caller, now: number): Promise<Verdict> {
    const { promise, resolve, reject } = Promise.withResolvers<Verdict>()
    this.#waiting.push({ kind, caller, now, resolve, reject })
    if (!this.#isSettling) this.#settleSoon()
    return promise
  }

  #settleSoon(): void {
    this.#isSettling = true
    setImmediate(() => void this.#settleWaiting())
  }

  async #settleWaiting(): Promise<void> {
    const group = this.#waiting
    this.#waiting = []
    try {
      const verdicts = await this.#settle(group)
      for (const [index, verdict] of verdicts.entries()) group[index]?.resolve(verdict)
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
    this.#isSettling = false
    if (this.#waiting.length > 0) this.#settleSoon()
  }

  async #settle(group: readonly Waiting[]): Promise<readonly Verdict[]> {
    const kind = group.some((request) => request.kind === 'take') ? 'write' : 'read'
    const [verdicts, version] = await this.#atOnce(kind, (run, current) => {
      if (current !== this.#known) this.#books.forget()
      // The books are ahead of the store, and stay so where the transaction fails.
      this.#known = undefined
      const settled = group.map(({ kind: wanted, caller, now }) => {
        this.#books.learn(caller, run)
        return wanted === 'take' ? this.#books.take(caller, now) : this.#books.verdict(caller, now)
      })
      this.#books.write(run)
      return [settled, current] as const
    })
    this.#known = version
    return verdicts
  }
}
