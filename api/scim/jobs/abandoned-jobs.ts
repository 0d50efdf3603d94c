/**
 * Finds running jobs without a process: jobs of dead processes, with a stale heartbeat, and lost ones of this process.
 */
import type { Failure } from '../failures.ts'
import { noticeFailure } from './failure-notice.ts'
import { failJob, failAbandonedJob, listHeartbeats } from './job-store.ts'
import { UNOBSERVED } from '../observer.ts'
import type { JobDependencies } from './run-job.ts'

type WatchDependencies = Pick<
  JobDependencies,
  'store' | 'clock' | 'log' | 'heartbeat' | 'observer' | 'notify'
>

/** A process that runs jobs. */
export interface Runner {
  /** The id in the rows of its jobs. */
  readonly id: string
  /** Whether it is running this job. */
  readonly runs: (jobId: string) => boolean
  /** The end of its own job that the store did not record; undefined if the job never began. */
  readonly endOf: (jobId: string) => Failure | undefined
  /** Called once such an end is recorded. */
  readonly forget: (jobId: string) => void
}

/** The share of a beat's pause that a look may be early. */
const EARLY = 0.1

interface Observed {
  readonly heartbeat: number
  /** How often the heartbeat was seen at this number, a beat's pause apart. */
  readonly looks: number
  readonly lastLook: number
}

/**
 * Checks the running jobs; call it at intervals, but never while a job is being taken. A job of another process fails
 * as interrupted if its heartbeat did not change over many looks. Looks are counted instead of time, so that clock
 * differences and suspended machines do not make a living job seem abandoned.
 */
export function watchAbandonedJobs(
  runner: Runner,
  { store, clock, log, heartbeat, notify, observer = UNOBSERVED }: WatchDependencies,
): () => Promise<void> {
  let observed = new Map<string, Observed>()

  // The store failed when the job was taken or when its end was to be recorded. It may have done either all the same.
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
    // Before the query, which takes a varying time.
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
  // Looks in quick succession count as one. A slightly early look counts, since otherwise a whole beat would be lost.
  if (lookedAt - before.lastLook < beatMs * (1 - EARLY)) return before
  return { heartbeat, looks: before.looks + 1, lastLook: lookedAt }
}
