/** Runs one job from its start to its end. */
import type { Clock } from '../../http/call.ts'
import type { Notify } from '../../process/webhook.ts'
import type { Log } from '../../process/log.ts'
import type { Store } from '../../store/store.ts'
import { SyncFailure, type Failure } from '../failures.ts'
import { noticeFailure } from './failure-notice.ts'
import { beat, failJob, findJob, type Job, type RunningJob } from './job-store.ts'
import { UNOBSERVED } from '../observer.ts'
import type { SyncDependencies, SyncOptions } from '../sync/sync.ts'
import { lostJob, type RunSync } from './run-in-process.ts'

export interface Heartbeat {
  /** Pause between two heartbeats. */
  readonly beatMs: number
  /** After how many such pauses without a heartbeat a process counts as dead. */
  readonly missedBeats: number
}

export const HEARTBEAT: Heartbeat = { beatMs: 2000, missedBeats: 8 }

export interface JobDependencies extends SyncDependencies {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly heartbeat: Heartbeat
  /** Runs a sync, in this process or another one. */
  readonly runSync: RunSync
  /** Receives failed scheduled syncs. */
  readonly notify?: Notify
  /** Maximum milliseconds of a sync. */
  readonly syncMs: number
}

/** A job failed, but the store did not record it: it stays open until a retry. */
export class UnrecordedEnd extends Error {
  override readonly name = 'UnrecordedEnd'
  readonly failure: Failure

  constructor(failure: Failure, options: ErrorOptions) {
    super(`The end of the job (${failure}) could not be recorded`, options)
    this.failure = failure
  }
}

/**
 * Runs a job that `runner` has taken, and records its end.
 * @throws {UnrecordedEnd} if the store does not record it.
 */
export async function runJob(
  job: Job,
  runner: string,
  options: SyncOptions,
  dependencies: JobDependencies,
): Promise<void> {
  const { store, log, syncMs, runSync, notify, observer = UNOBSERVED } = dependencies
  const start = performance.now()
  const running: RunningJob = { id: job.id, runner }
  const about = { job_id: job.id, account_id: job.account_id }
  const ending = new AbortController()
  const deadline = setTimeout(() => {
    ending.abort(new SyncFailure('timed_out', `not done within ${syncMs} ms`))
  }, syncMs)
  const heart = keepBeating(running, job.account_id, ending, dependencies)
  try {
    const signal = AbortSignal.any([options.signal, ending.signal])
    const task = { running, accountId: job.account_id }
    const { warnings, ...counts } = await runSync(task, { ...options, signal }, dependencies)
    const level = warnings.length > 0 ? 'warn' : 'info'
    log[level](
      { ...about, ...counts, ...(warnings.length > 0 ? { warnings } : {}) },
      'directory sync succeeded',
    )
    observer.groupsChanged({ written: counts.changed, deleted: counts.deleted })
    observer.jobFinished({ outcome: 'succeeded', ms: performance.now() - start })
  } catch (error) {
    const fault = asFailure(error)
    const level = fault.failure === 'internal' ? 'error' : 'warn'
    log[level]({ ...about, failure: fault.failure, err: fault }, 'directory sync failed')
    const ended = await recordFailure(running, fault.failure, dependencies)
    // A job that another process ended as abandoned was counted there.
    if (ended !== undefined) {
      observer.jobFinished({ outcome: fault.failure, ms: performance.now() - start })
      if (notify !== undefined) await noticeFailure(store, ended, notify)
    }
  } finally {
    clearTimeout(deadline)
    await heart.stop()
  }
}

async function recordFailure(running: RunningJob, failure: Failure, { store, clock }: JobDependencies) {
  try {
    return await failJob(store, running, { failure, now: clock() })
  } catch (error) {
    throw new UnrecordedEnd(failure, { cause: error })
  }
}

function keepBeating(
  running: RunningJob,
  accountId: string,
  ending: AbortController,
  { store, log, heartbeat }: JobDependencies,
) {
  let lastBeat = Promise.resolve()
  const beatOnce = async () => {
    try {
      if (await beat(store, running)) return
      // A child process may have recorded success just before its message arrives.
      const job = await findJob(store, accountId, running.id)
      if (job?.status !== 'succeeded') ending.abort(lostJob())
    } catch (error) {
      log.error({ job_id: running.id, err: error }, 'heartbeat of a sync failed')
    }
  }
  const timer = setInterval(() => {
    lastBeat = beatOnce()
  }, heartbeat.beatMs)
  return {
    async stop() {
      clearInterval(timer)
      await lastBeat
    },
  }
}

function asFailure(error: unknown): SyncFailure {
  if (error instanceof SyncFailure) return error
  return new SyncFailure('internal', String(error), { cause: error })
}
