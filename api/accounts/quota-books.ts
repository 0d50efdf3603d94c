/** What is used of the rate limits, as it stands in the store, and what is counted on top before it is written there. */
import { z } from 'zod'
import type { Caller } from '../call.ts'
import type { RunStatement } from '../store/store.ts'
import { isOpen, POLICIES, verdictOn, type Policy, type Verdict, type Window } from './policies.ts'

const READ = 'SELECT window_ends, used FROM quotas WHERE policy = $1 AND subject = $2'
const WRITE = `
  INSERT INTO quotas (policy, subject, window_ends, used) VALUES ($1, $2, $3, $4)
  ON CONFLICT (policy, subject) DO UPDATE SET window_ends = excluded.window_ends, used = excluded.used`

const storedSchema = z.array(z.object({ window_ends: z.iso.datetime(), used: z.number() }))

/** Subjects of a policy that are remembered, some 200 bytes each. */
const REMEMBERED_SUBJECTS = 20_000

/** One book for each policy. Times are ms since 1970. */
export class QuotaBooks {
  readonly #books = POLICIES.map((policy) => new Book(policy))

  /** Whether all that is used by this caller is known. */
  knows(caller: Caller): boolean {
    return this.#books.every((book) => book.knows(caller))
  }

  /** Looks up what is not known of this caller. */
  learn(caller: Caller, run: RunStatement): void {
    for (const book of this.#books) book.learn(caller, run)
  }

  /** The verdict on a request of a caller that is known. */
  verdict(caller: Caller, now: number): Verdict {
    const windows = this.#books.map((book) => book.find(caller, now))
    return verdictOn(windows, now)
  }

  /** Counts a request of a caller that is known, unless a limit is used up. */
  take(caller: Caller, now: number): Verdict {
    const before = this.verdict(caller, now)
    if (before.exhausted !== undefined) return before
    for (const book of this.#books) book.count(caller, now)
    const quotas = before.quotas.map((quota) => ({ ...quota, remaining: quota.remaining - 1 }))
    return { quotas, exhausted: undefined }
  }

  /** Writes what was counted since the last time. */
  write(run: RunStatement): void {
    for (const book of this.#books) book.write(run)
  }

  forget(): void {
    for (const book of this.#books) book.forget()
  }
}

/** The windows of one policy, by subject. */
class Book {
  readonly #policy: Policy
  readonly #windows = new Map<string, Window | undefined>()
  readonly #changed = new Map<string, Window>()

  constructor(policy: Policy) {
    this.#policy = policy
  }

  knows(caller: Caller): boolean {
    return this.#windows.has(this.#policy.subject(caller))
  }

  learn(caller: Caller, run: RunStatement): void {
    const subject = this.#policy.subject(caller)
    if (!this.#windows.has(subject)) this.#windows.set(subject, readWindow(run, this.#policy, subject))
  }

  /** The window that is open at `now`. */
  find(caller: Caller, now: number): Window | undefined {
    const window = this.#windows.get(this.#policy.subject(caller))
    return window !== undefined && isOpen(this.#policy, window, now) ? window : undefined
  }

  count(caller: Caller, now: number): void {
    const { ends, used } = this.find(caller, now) ?? { ends: this.#policy.windowEnd(now), used: 0 }
    const subject = this.#policy.subject(caller)
    const window = { ends, used: used + 1 }
    this.#windows.set(subject, window)
    this.#changed.set(subject, window)
  }

  write(run: RunStatement): void {
    for (const [subject, { ends, used }] of this.#changed) {
      run(WRITE, [this.#policy.name, subject, new Date(ends).toISOString(), used])
    }
    this.#changed.clear()
    if (this.#windows.size > REMEMBERED_SUBJECTS) this.#windows.clear()
  }

  forget(): void {
    this.#windows.clear()
    this.#changed.clear()
  }
}

function readWindow(run: RunStatement, policy: Policy, subject: string): Window | undefined {
  const [row] = storedSchema.parse(run(READ, [policy.name, subject]))
  return row && { ends: Date.parse(row.window_ends), used: row.used }
}
