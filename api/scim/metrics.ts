/** Metrics of directory sync. Labels hold closed sets: never an account, an address or what a directory sent. */
import { Counter, Histogram, type Registry } from 'prom-client'
import type { Failure } from './failures.ts'

/** Receives events of directory sync. No method may throw or take long. */
export interface SyncObserver {
  /** A job is over; `ms` is its time in this process, if it ran here. */
  jobFinished(job: { readonly outcome: 'succeeded' | Failure; readonly ms?: number }): void
  /** A sync wrote new or changed groups, and marked others as deleted. */
  groupsChanged(groups: { readonly written: number; readonly deleted: number }): void
  /** The end of one request to a directory: an answer to assess, a retry, or a failure. */
  requestFinished(outcome: 'answer' | 'slow_down' | 'transient' | Failure): void
}

/** Upper bounds in seconds: from a small directory to the longest default sync. */
const SECONDS = [0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800]

/** An observer that keeps the metrics of directory sync in `registry`. */
export function createScimMetrics(registry: Registry): SyncObserver {
  const counter = <Label extends string>(name: string, help: string, label: Label) =>
    new Counter({ name, help, labelNames: [label], registers: [registry] })
  const jobs = counter(
    'scim_jobs_total',
    'Sync jobs by outcome: succeeded, or the cause of the failure.',
    'outcome',
  )
  const duration = new Histogram({
    name: 'scim_job_duration_seconds',
    help: 'Time from the start of a sync job to its end.',
    buckets: SECONDS,
    registers: [registry],
  })
  const groups = counter(
    'scim_groups_changed_total',
    'Groups that syncs changed: written (new, changed or back again) or deleted.',
    'change',
  )
  const requests = counter(
    'scim_directory_requests_total',
    'Requests to directories: answer, slow_down and transient (both tried again), or the cause of the failure.',
    'outcome',
  )
  return {
    jobFinished({ outcome, ms }) {
      jobs.inc({ outcome })
      if (ms !== undefined) duration.observe(ms / 1000)
    },
    groupsChanged({ written, deleted }) {
      groups.inc({ change: 'written' }, written)
      groups.inc({ change: 'deleted' }, deleted)
    },
    requestFinished: (outcome) => requests.inc({ outcome }),
  }
}
