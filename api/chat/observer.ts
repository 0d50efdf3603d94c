import type { UsageRecord } from './records/usage-record.ts'

/** A model and one of its providers, both by their name in the configuration. */
export interface Candidate {
  readonly model: string
  readonly provider: string
}

/** Receives events of the chat route. No method may throw or take long. */
export interface ChatObserver {
  /** A request is over; `record` is its usage record. */
  requestFinished(record: UsageRecord): void
  /** An attempt is over: `outcome` is `served` or the error type, `ms` its duration in milliseconds. */
  attemptFinished(attempt: Candidate & { readonly outcome: string; readonly ms: number }): void
  /** A request moved on from this candidate to the next one. */
  fellBack(from: Candidate): void
  /** A candidate's breaker opened (then the candidate is tried last) or closed. */
  breakerChanged(breaker: Candidate & { readonly open: boolean }): void
}
