/** Finds running jobs whose process is dead: their heartbeat stands still. */
import { failStillJob, listHeartbeats } from './job-store.ts'
import { UNOBSERVED } from './observer.ts'
import type { JobEffects } from './run-job.ts'

type WatchEffects = Pick<JobEffects, 'store' | 'clock' | 'log' | 'pulse' | 'observer'>

interface Observed {
  readonly heartbeat: number
  /** How often it was seen at this number, each time a beat's pause after the time before. */
  readonly looks: number
  readonly lastLook: number
}

/**
 * A look at the jobs of other processes; call it every now and then. A job whose heartbeat did not move over many
 * looks is failed as interrupted. Looks count, not time: neither the clock of another machine nor a machine that
 * slept for a while makes a living job seem dead.
 */
export function watchForDead(
  runner: string,
  { store, clock, log, pulse, observer = UNOBSERVED }: WatchEffects,
): () => Promise<void> {
  let observed = new Map<string, Observed>()
  return async () => {
    const seen = new Map<string, Observed>()
    for (const job of await listHeartbeats(store, runner)) {
      const now = lookAgain(observed.get(job.id), job.heartbeat, pulse.beatMs)
      if (now.looks <= pulse.stillBeats) seen.set(job.id, now)
      else if (await failStillJob(store, job, clock())) {
        observer.jobFinished({ outcome: 'interrupted' })
        log.warn({ job_id: job.id, failure: 'interrupted' }, 'the process of a directory sync is gone')
      }
    }
    observed = seen
  }
}

function lookAgain(before: Observed | undefined, heartbeat: number, beatMs: number): Observed {
  const lastLook = performance.now()
  if (before?.heartbeat !== heartbeat) return { heartbeat, looks: 0, lastLook }
  // Several looks in quick succession are one.
  if (lastLook - before.lastLook < beatMs) return before
  return { heartbeat, looks: before.looks + 1, lastLook }
}
