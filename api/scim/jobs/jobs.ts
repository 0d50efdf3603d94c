/**
 * The sync jobs of a service: runs queued and scheduled ones, and ends the ones of dead processes. All state is in the
 * store, so that processes share the work and a restart loses nothing.
 */
import { randomUUID } from 'node:crypto'
import { watchAbandonedJobs } from './abandoned-jobs.ts'
import { SyncFailure, type Failure } from '../failures.ts'
import { requestJob, takeNextJob, type Job } from './job-store.ts'
import { runJob, UnrecordedEnd, type JobDependencies } from './run-job.ts'
import { createSlots, HeldSlot } from './slots.ts'
import { watchSchedules } from './scheduled-syncs.ts'

/** Jobs per slot, all but one of them pausing: each holds a process and its data. */
const JOBS_PER_SLOT = 8

export interface SyncJobs {
  /** Starts to look for work. */
  begin(): void
  /** The open job of the account, or a new one; undefined without a directory (CONTRACT 5). */
  request(accountId: string): Promise<Job | undefined>
  /** Interrupts running jobs and waits until that is recorded. */
  close(): Promise<void>
}

interface JobsOptions {
  /** Concurrent syncs of different accounts. */
  readonly concurrent: number
}

export function createSyncJobs(dependencies: JobDependencies, { concurrent }: JobsOptions): SyncJobs {
  const { store, clock, log, heartbeat } = dependencies
  const stopping = new AbortController()
  const runner = createRunner(dependencies, { signal: stopping.signal, concurrent, onFree: () => wake() })
  const endAbandonedJobs = watchAbandonedJobs(runner, dependencies)
  const startDueJobs = watchSchedules(dependencies)
  let looking = Promise.resolve()
  let waiting = false
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    waiting = false
    if (stopping.signal.aborted) return
    try {
      await endAbandonedJobs()
      await startDueJobs()
      while (await runner.takeNext());
    } catch (error) {
      logFault(error)
    }
  }

  function logFault(error: unknown): void {
    log.error({ err: error }, 'sync jobs could not be checked')
  }

  // One look at a time, and at most one queued: two at once could take too many jobs.
  function wake(): void {
    if (waiting) return
    waiting = true
    looking = looking.then(look)
  }

  return {
    begin() {
      wake()
      timer = setInterval(wake, heartbeat.beatMs)
    },
    async request(accountId) {
      const job = await requestJob(store, accountId, clock())
      if (job?.status === 'queued') wake()
      return job
    },
    async close() {
      clearInterval(timer)
      stopping.abort(new SyncFailure('interrupted', 'the service was stopped'))
      await looking
      await runner.ended()
      if (runner.hasUnrecorded()) await endAbandonedJobs().catch(logFault)
    },
  }
}

// The identity of this process in the rows of its jobs.
function createRunner(
  dependencies: JobDependencies,
  { signal, concurrent, onFree }: JobsOptions & { readonly signal: AbortSignal; readonly onFree: () => void },
) {
  const { store, clock, log } = dependencies
  const slots = createSlots(concurrent)
  const id = randomUUID()
  const running = new Map<string, Promise<void>>()
  const unrecorded = new Map<string, Failure>()

  async function run(job: Job, { whilePausing }: HeldSlot): Promise<void> {
    const options = { signal, allowDeletions: false, progress: () => undefined, whilePausing }
    try {
      await runJob(job, id, options, dependencies)
    } catch (error) {
      unrecorded.set(job.id, error instanceof UnrecordedEnd ? error.failure : 'internal')
      const message = 'the end of a directory sync could not be recorded; trying again'
      log.error({ job_id: job.id, err: error }, message)
    }
  }

  return {
    id,
    runs: (jobId: string) => running.has(jobId),
    endOf: (jobId: string) => unrecorded.get(jobId),
    forget: (jobId: string) => void unrecorded.delete(jobId),
    hasUnrecorded: () => unrecorded.size > 0,
    /** Takes a queued job, if there is one and a free slot. */
    async takeNext(): Promise<boolean> {
      if (signal.aborted || running.size >= concurrent * JOBS_PER_SLOT || !slots.tryTake()) return false
      const slot = new HeldSlot(slots, onFree)
      const job = await takeNextJob(store, id, clock()).catch((error: unknown) => {
        slots.release()
        throw error
      })
      if (job === undefined) {
        slots.release()
        return false
      }
      const work = run(job, slot).finally(() => {
        running.delete(job.id)
        slot.end()
        onFree()
      })
      running.set(job.id, work)
      return true
    },
    async ended(): Promise<void> {
      await Promise.all(running.values())
    },
  }
}
