import type { Failure } from './failures.ts'

/** How a sync job ended. */
type JobOutcome = 'succeeded' | Failure

/** The end of one request to a directory: an answer to assess, a retry, or a failure. */
type RequestOutcome = 'answer' | 'slow_down' | 'transient' | Failure

/** Receives events of directory sync. No method may throw or take long. */
export interface SyncObserver {
  /** A job is over; `ms` is its time in this process, if it ran here. */
  jobFinished(job: { readonly outcome: JobOutcome; readonly ms?: number }): void
  /** A sync wrote new or changed groups, and marked others as deleted. */
  groupsChanged(groups: { readonly written: number; readonly deleted: number }): void
  requestFinished(outcome: RequestOutcome): void
}

export const UNOBSERVED: SyncObserver = {
  jobFinished: () => undefined,
  groupsChanged: () => undefined,
  requestFinished: () => undefined,
}
