import type { Failure } from './failures.ts'

/** How a sync job ended. */
type JobOutcome = 'succeeded' | Failure

/** How one request to a directory ended: with an answer to judge, as something to try again, or as a failure. */
type RequestOutcome = 'answer' | 'slow_down' | 'transient' | Failure

/** What directory sync tells of its work as it goes on. None of it may throw or take long. */
export interface SyncObserver {
  /** A job is over; `ms` is the time since this process took it in hand, if it was this process that had it. */
  jobFinished(job: { readonly outcome: JobOutcome; readonly ms?: number }): void
  /** A sync wrote so many new or changed groups, and marked so many as deleted. */
  groupsChanged(groups: { readonly written: number; readonly deleted: number }): void
  /** A request to a directory is over. */
  directoryAsked(outcome: RequestOutcome): void
}

/** Nobody looks on. */
export const UNOBSERVED: SyncObserver = {
  jobFinished: () => undefined,
  groupsChanged: () => undefined,
  directoryAsked: () => undefined,
}
