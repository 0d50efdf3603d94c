/** Metrics of directory sync. Labels hold closed sets: never an account, an address or what a directory sent. */
import { Counter, Histogram, type Registry } from 'prom-client'
import type { Failure } from './failures.ts'

/** Upper bounds in seconds: from a small directory to the longest default sync. */
const SECONDS = [0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800]

export type SyncMetrics = ReturnType<typeof createScimMetrics>

/** The metrics of directory sync, in `registry`. */
export function createScimMetrics(registry: Registry) {
  const jobs = new Counter({
    name: 'scim_jobs_total',
    help: 'Sync jobs: succeeded, or the cause of the failure.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  const duration = new Histogram({
    name: 'scim_job_duration_seconds',
    help: 'Time from the start of a sync job to its end.',
    buckets: SECONDS,
    registers: [registry],
  })
  /** A job is over; `ms` is its time in this process, if it ran here. */
  const jobFinished = (outcome: 'succeeded' | Failure, ms?: number) => {
    jobs.inc({ outcome })
    if (ms !== undefined) duration.observe(ms / 1000)
  }
  return { jobFinished }
}
