/** Finds running jobs whose process is dead: their heartbeat stands still. */
import { failStillJob, listHeartbeats } from './job-store.ts'
import type { JobEffects } from './run-job.ts'

interface Observed {
  readonly heartbeat: number
  /** When it was first seen at this number, by our own monotonic clock. */
  readonly since: number
}

/**
 * A look at the jobs of other processes; call it every now and then. A job whose heartbeat has not moved for
 * long enough is failed as interrupted. Only what was seen here counts, not the clocks of other machines.
 */
export function watchForDead(
  runner: string,
  { store, clock, log, pulse }: Pick<JobEffects, 'store' | 'clock' | 'log' | 'pulse'>,
): () => Promise<void> {
  let observed = new Map<string, Observed>()
  return async () => {
    const now = performance.now()
    const seen = new Map<string, Observed>()
    for (const job of await listHeartbeats(store, runner)) {
      const before = observed.get(job.id)
      const since = before?.heartbeat === job.heartbeat ? before.since : now
      if (now - since < pulse.stillMs) seen.set(job.id, { heartbeat: job.heartbeat, since })
      else if (await failStillJob(store, job, clock())) {
        log.warn({ job_id: job.id, failure: 'interrupted' }, 'the process of a directory sync is gone')
      }
    }
    observed = seen
  }
}
