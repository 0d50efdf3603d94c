/** What is used of the rate limits, as it stands in the store, and what is counted on top before it is written there. */
import { z } from 'zod'
import type { Caller } from '../../http/call.ts'
import type { RunStatement } from '../../store/store.ts'
import { isOpen, POLICIES, verdictOn, type Policy, type Verdict, type Window } from './policies.ts'

const READ = 'SELECT rowid AS row, window_ends, used FROM quotas WHERE policy = $1 AND subject = $2'
const ADD = `
  INSERT INTO quotas (policy, subject, window_ends, used) VALUES ($1, $2, $3, $4) RETURNING rowid AS row`
// By the number of the row, which takes half the time of finding it by policy and subject.
const BEGIN_WINDOW = 'UPDATE quotas SET window_ends = $1, used = $2 WHERE rowid = $3'
const GO_ON = 'UPDATE quotas SET used = $1 WHERE rowid = $2'

const storedSchema = z.array(z.object({ row: z.int(), window_ends: z.iso.datetime(), used: z.number() }))
const addedSchema = z.tuple([z.object({ row: z.int() })])

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

/** What is known of one subject. */
interface Entry {
  /** What was counted, or stood in the store; undefined where there is nothing. */
  window: Window | undefined
  /** The row in the store, and the end of the window that stands there. */
  stored: { readonly row: number; readonly ends: number } | undefined
}

/** The windows of one policy, by subject. */
class Book {
  readonly #policy: Policy
  readonly #entries = new Map<string, Entry>()
  readonly #changed = new Map<string, Entry>()

  constructor(policy: Policy) {
    this.#policy = policy
  }

  knows(caller: Caller): boolean {
    return this.#entries.has(this.#policy.subject(caller))
  }

  learn(caller: Caller, run: RunStatement): void {
    const subject = this.#policy.subject(caller)
    if (!this.#entries.has(subject)) this.#entries.set(subject, readEntry(run, this.#policy, subject))
  }

  /** The window that is open at `now`. */
  find(caller: Caller, now: number): Window | undefined {
    const window = this.#entries.get(this.#policy.subject(caller))?.window
    return window !== undefined && isOpen(this.#policy, window, now) ? window : undefined
  }

  /** Counts a request of a caller that is known. */
  count(caller: Caller, now: number): void {
    const subject = this.#policy.subject(caller)
    const entry = this.#entries.get(subject)
    if (entry === undefined) throw new RangeError(`Nothing is known of ${subject}`)
    const { ends, used } = this.find(caller, now) ?? { ends: this.#policy.windowEnd(now), used: 0 }
    entry.window = { ends, used: used + 1 }
    this.#changed.set(subject, entry)
  }

  write(run: RunStatement): void {
    for (const [subject, entry] of this.#changed) writeEntry(run, this.#policy, subject, entry)
    this.#changed.clear()
    if (this.#entries.size > REMEMBERED_SUBJECTS) this.#entries.clear()
  }

  forget(): void {
    this.#entries.clear()
    this.#changed.clear()
  }
}

function readEntry(run: RunStatement, policy: Policy, subject: string): Entry {
  const [found] = storedSchema.parse(run(READ, [policy.name, subject]))
  if (found === undefined) return { window: undefined, stored: undefined }
  const ends = Date.parse(found.window_ends)
  return { window: { ends, used: found.used }, stored: { row: found.row, ends } }
}

function writeEntry(run: RunStatement, policy: Policy, subject: string, entry: Entry): void {
  const { window, stored } = entry
  if (window === undefined) return
  const { ends, used } = window
  if (stored?.ends === ends) {
    run(GO_ON, [used, stored.row])
    return
  }
  const end = new Date(ends).toISOString()
  if (stored === undefined) {
    const [{ row }] = addedSchema.parse(run(ADD, [policy.name, subject, end, used]))
    entry.stored = { row, ends }
  } else {
    run(BEGIN_WINDOW, [end, used, stored.row])
    entry.stored = { row: stored.row, ends }
  }
}
