/** Finds running jobs that nobody runs: those of processes that are gone, whose heartbeat stands still, and our own. */
import type { Failure } from '../failures.ts'
import { noticeFailure } from './failure-notice.ts'
import { failJob, failAbandonedJob, listHeartbeats } from './job-store.ts'
import { UNOBSERVED } from '../observer.ts'
import type { JobDependencies } from './run-job.ts'

type WatchDependencies = Pick<
  JobDependencies,
  'store' | 'clock' | 'log' | 'heartbeat' | 'observer' | 'notify'
>

/** A process that runs jobs, as it knows itself. */
export interface Runner {
  /** Named in the row of each job that it has in hand. */
  readonly id: string
  /** Whether it runs this job now. */
  readonly runs: (jobId: string) => boolean
  /** How a job of its own ended, where the store did not take it; undefined where it never began. */
  readonly endOf: (jobId: string) => Failure | undefined
  /** Told that such an end has been recorded now. */
  readonly forget: (jobId: string) => void
}

/** The part of a beat's pause by which a look may come early. */
const EARLY = 0.1

interface Observed {
  readonly heartbeat: number
  /** How often it was seen at this number, each time a beat's pause after the time before. */
  readonly looks: number
  readonly lastLook: number
}

/**
 * A look at the running jobs; call it every now and then, though never while one is being taken in hand. A job of
 * another process whose heartbeat did not move over many looks is failed as interrupted. Looks count, not time:
 * neither the clock of another machine nor a machine that slept for a while makes a living job seem abandoned.
 */
export function watchAbandonedJobs(
  runner: Runner,
  { store, clock, log, heartbeat, notify, observer = UNOBSERVED }: WatchDependencies,
): () => Promise<void> {
  let observed = new Map<string, Observed>()

  // The store failed when the job was taken, which it may have been all the same, or when its end was to be recorded.
  async function endOwn(id: string): Promise<void> {
    const failure = runner.endOf(id) ?? 'interrupted'
    const ended = await failJob(store, { id, runner: runner.id }, { failure, now: clock() })
    runner.forget(id)
    if (ended === undefined) return
    observer.jobFinished({ outcome: failure })
    if (notify !== undefined) void noticeFailure(store, ended, notify)
    log.warn({ job_id: id, failure }, 'a directory sync that stood open after a fault of the store is ended')
  }

  async function endAbandoned(job: Parameters<typeof failAbandonedJob>[1]): Promise<void> {
    const ended = await failAbandonedJob(store, job, clock())
    if (ended === undefined) return
    observer.jobFinished({ outcome: 'interrupted' })
    if (notify !== undefined) void noticeFailure(store, ended, notify)
    log.warn({ job_id: job.id, failure: 'interrupted' }, 'the process of a directory sync is gone')
  }

  return async () => {
    const seen = new Map<string, Observed>()
    // Before the answer, which takes now more and now less time.
    const lookedAt = performance.now()
    for (const job of await listHeartbeats(store)) {
      if (job.runner === runner.id) {
        if (!runner.runs(job.id)) await endOwn(job.id)
        continue
      }
      const now = lookAgain(observed.get(job.id), job.heartbeat, { lookedAt, beatMs: heartbeat.beatMs })
      if (now.looks < heartbeat.missedBeats) seen.set(job.id, now)
      else await endAbandoned(job)
    }
    observed = seen
  }
}

function lookAgain(
  before: Observed | undefined,
  heartbeat: number,
  { lookedAt, beatMs }: { readonly lookedAt: number; readonly beatMs: number },
): Observed {
  if (before?.heartbeat !== heartbeat) return { heartbeat, looks: 0, lastLook: lookedAt }
  // Several looks in quick succession are one; one that comes a little early is a look, or a whole beat would be lost.
  if (lookedAt - before.lastLook < beatMs * (1 - EARLY)) return before
  return { heartbeat, looks: before.looks + 1, lastLook: lookedAt }
}
