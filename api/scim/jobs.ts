/**
 * Runs sync jobs: the queued and scheduled ones of a service, and one of a command. All state is in the store, so that
 * processes share the work and a restart loses nothing.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../http/errors.ts'
import { cronSchedule } from '../process/cron-schedule.ts'
import type { Log } from '../process/log.ts'
import type { Notify } from '../process/webhook.ts'
import { advanceSchedule, dueConnections, findConnection, type Connection } from './connections.ts'
import { SyncFailure } from './failures.ts'
import { sweepMembers } from './groups.ts'
import {
  failJob,
  findJob,
  formerJob,
  interruptExpiredJobs,
  renewLease,
  requestJob,
  showJob,
  takeJob,
  type Job,
  type RunningJob,
} from './job-store.ts'
import type { SyncMetrics } from './metrics.ts'
import { lostJob, sync, type SyncDependencies, type SyncOptions } from './sync.ts'

/** A process that has not renewed the lease of its job for this long is dead. */
export const LEASE_MS = 20_000

/** The parts of a lease after which a process renews it, and polls for work. */
const RENEWALS_PER_LEASE = 5
const POLLS_PER_LEASE = 10

export interface JobDependencies extends SyncDependencies {
  readonly log: Log
  readonly leaseMs: number
  /** Maximum milliseconds of a sync. */
  readonly syncMs: number
  /** Receives failed scheduled syncs, and their recovery. */
  readonly notify?: Notify
  readonly metrics?: SyncMetrics
}

export type SyncJobs = ReturnType<typeof createSyncJobs>

/** Runs up to `concurrent` syncs of different accounts at the same time. */
export function createSyncJobs(
  dependencies: JobDependencies,
  { concurrent }: { readonly concurrent: number },
) {
  const { store, clock, log, leaseMs } = dependencies
  const stopping = new AbortController()
  const { signal } = stopping
  const running = new Set<Promise<void>>()
  const takeOne = jobTaker(running, { signal, onEnd: () => wake() }, dependencies)
  let polling = Promise.resolve()
  let isWaiting = false
  let timer: NodeJS.Timeout | undefined

  async function poll(): Promise<void> {
    isWaiting = false
    try {
      for (const job of await interruptExpiredJobs(store, clock())) await reportEnd(job, dependencies)
      for (const connection of await dueConnections(store, clock())) await startDue(connection, dependencies)
      while (running.size < concurrent && !signal.aborted && (await takeOne()));
    } catch (error) {
      log.error({ err: error }, 'sync jobs could not be checked')
    }
  }

  // One poll at a time, and at most one queued: two at once could take too many jobs.
  function wake(): void {
    if (isWaiting || signal.aborted) return
    isWaiting = true
    polling = polling.then(poll)
  }

  return {
    /** Starts to poll for work. */
    begin(): void {
      wake()
      timer = setInterval(wake, leaseMs / POLLS_PER_LEASE)
    },
    /** The open job of the account, or a new one; undefined without a directory (CONTRACT 5). */
    async request(accountId: string): Promise<Job | undefined> {
      const job = await store.transaction((queries) => requestJob(queries, accountId, { now: clock() }))
      if (job?.status === 'queued') wake()
      return job
    },
    /** Interrupts running jobs and waits until that is recorded. */
    async close(): Promise<void> {
      clearInterval(timer)
      stopping.abort(new SyncFailure('interrupted', 'the service was stopped'))
      await polling
      await Promise.all(running)
    },
  }
}

/** Takes a queued job, if there is one, and lets it run. */
function jobTaker(
  running: Set<Promise<void>>,
  { signal, onEnd }: { readonly signal: AbortSignal; readonly onEnd: () => void },
  dependencies: JobDependencies,
): () => Promise<boolean> {
  const { store, clock, leaseMs } = dependencies
  // The identity of this process in the rows of its jobs.
  const runner = randomUUID()
  return async () => {
    const job = await takeJob(store, runner, { now: clock(), leaseMs })
    if (job === undefined) return false
    const options = { signal, allowDeletions: false, progress: () => undefined }
    const work = runJob(job, runner, options, dependencies).finally(() => {
      running.delete(work)
      onEnd()
    })
    running.add(work)
    return true
  }
}

/** Requests a due job. Of several processes one does; several missed times give one job. */
async function startDue(connection: Connection, { store, clock, log }: JobDependencies): Promise<void> {
  const { account_id, schedule } = connection
  try {
    const next = schedule === null ? undefined : cronSchedule(schedule).next(clock())
    // In one transaction: a process that dies in between would lose the sync.
    await store.transaction(async (queries) => {
      if (await advanceSchedule(queries, connection, next))
        await requestJob(queries, account_id, { now: clock(), isScheduled: true })
    })
  } catch (error) {
    log.error({ account_id, err: error }, 'a scheduled directory sync could not be started')
  }
}

/** Runs a job that `runner` has taken, and records its end. If the store fails, the lease expires. */
async function runJob(
  job: Job,
  runner: string,
  options: SyncOptions,
  dependencies: JobDependencies,
): Promise<void> {
  const { store, clock, log, syncMs, metrics } = dependencies
  const start = performance.now()
  const running: RunningJob = { id: job.id, runner }
  const about = { job_id: job.id, account_id: job.account_id }
  const ending = new AbortController()
  const signal = AbortSignal.any([options.signal, ending.signal])
  const late = new SyncFailure('timed_out', `not done within ${syncMs} ms`)
  const deadline = setTimeout(() => ending.abort(late), syncMs)
  const lease = keepLease(running, ending, dependencies)
  try {
    const { warnings, ...counts } = await sync(running, job.account_id, { ...options, signal }, dependencies)
    const level = warnings.length > 0 ? 'warn' : 'info'
    log[level]({ ...about, ...counts, ...(warnings.length > 0 && { warnings }) }, 'directory sync succeeded')
    metrics?.groupsChanged(counts)
    await reportEnd({ ...job, status: 'succeeded' }, dependencies, performance.now() - start)
  } catch (error) {
    const fault =
      error instanceof SyncFailure ? error : new SyncFailure('internal', String(error), { cause: error })
    const { failure } = fault
    log[failure === 'internal' ? 'error' : 'warn']({ ...about, failure, err: fault }, 'directory sync failed')
    try {
      const ended = await failJob(store, running, { failure, now: clock() })
      // A job that another process ended as interrupted was counted there.
      if (ended !== undefined) await reportEnd(ended, dependencies, performance.now() - start)
    } catch (unrecorded) {
      log.error({ ...about, err: unrecorded }, 'the end of a directory sync could not be recorded')
    }
  } finally {
    clearTimeout(deadline)
    clearInterval(lease)
    await sweepMembers(store, job.account_id).catch((error: unknown) =>
      log.error({ ...about, err: error }, 'unused lists of members could not be deleted'),
    )
  }
}

function keepLease(
  running: RunningJob,
  ending: AbortController,
  { store, log, clock, leaseMs }: JobDependencies,
): NodeJS.Timeout {
  const renew = async () => {
    try {
      if (!(await renewLease(store, running, { now: clock(), leaseMs }))) ending.abort(lostJob())
    } catch (error) {
      log.error({ job_id: running.id, err: error }, 'the lease of a directory sync could not be renewed')
    }
  }
  return setInterval(() => void renew(), leaseMs / RENEWALS_PER_LEASE)
}

/** Counts the end of a job, and sends a notice of a scheduled one if it fails first or succeeds again. */
async function reportEnd(job: Job, dependencies: JobDependencies, ms?: number): Promise<void> {
  const { store, metrics, notify, log } = dependencies
  metrics?.jobFinished(job.status === 'succeeded' ? 'succeeded' : (job.failure ?? 'internal'), ms)
  if (notify === undefined || job.scheduled === 0) return
  try {
    const hadFailed = (await formerJob(store, job))?.status === 'failed'
    if (hadFailed !== (job.status === 'succeeded')) return
    const account = (await findConnection(store, job.account_id))?.account ?? job.account_id
    void notify(noticeOf(job, account, hadFailed))
  } catch (error) {
    log.error({ job_id: job.id, err: error }, 'the notice of a directory sync could not be sent')
  }
}

function noticeOf(job: Job, account: string, hadFailed: boolean) {
  const about = `The scheduled directory sync of account "${account}"`
  return {
    event: hadFailed ? 'sync_recovered' : 'sync_failed',
    message: hadFailed ? `${about} succeeds again.` : `${about} failed. ${showJob(job).error_message ?? ''}`,
    account,
    job_id: job.id,
  }
}

/** Runs a sync of the account in this process, after any open one; resolves to its finished job. */
export async function syncNow(
  accountId: string,
  options: SyncOptions,
  dependencies: JobDependencies & { readonly note: (line: string) => void },
): Promise<Job> {
  const { store, clock, note, leaseMs } = dependencies
  const runner = randomUUID()
  let waitedFor: string | undefined
  for (;;) {
    options.signal.throwIfAborted()
    const open = await store.transaction((queries) => requestJob(queries, accountId, { now: clock() }))
    if (open === undefined) throw new OperatorError('The connection was removed a moment ago')
    const job = await takeJob(store, runner, { now: clock(), leaseMs }, open.id)
    if (job !== undefined) {
      await runJob(job, runner, options, dependencies)
      return (await findJob(store, accountId, job.id)) ?? job
    }
    if (open.id !== waitedFor) note(`Job ${open.id} is running in another process; waiting for its end.`)
    waitedFor = open.id
    await interruptExpiredJobs(store, clock())
    await sleep(leaseMs / RENEWALS_PER_LEASE)
  }
}
