import type { UsageRecord } from './records/usage-record.ts'

/** A model of the configuration and one of its providers, both by name. */
export interface Candidate {
  readonly model: string
  readonly provider: string
}

/** What the chat route tells of its work as it goes on. None of it may throw or take long. */
export interface ChatObserver {
  /** A request is over and left this record. */
  requestFinished(record: UsageRecord): void
  /** One try is over: `outcome` is `served` or the error type, `ms` how long it took in milliseconds. */
  attemptFinished(attempt: Candidate & { readonly outcome: string; readonly ms: number }): void
  /** A request left this candidate for the next one. */
  fellBack(from: Candidate): void
  /** The breaker of a candidate opened, so that it is tried after the others of its model, or closed again. */
  breakerChanged(breaker: Candidate & { readonly open: boolean }): void
}
