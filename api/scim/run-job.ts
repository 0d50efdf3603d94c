/** Runs one job from its start to its end, in the service or in the operator's process. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../http/errors.ts'
import type { Log } from '../process/log.ts'
import type { Notify } from '../process/webhook.ts'
import type { Store } from '../store/store.ts'
import { findConnection } from './connections.ts'
import { SyncFailure, type Failure } from './failures.ts'
import { sweepMembers } from './groups.ts'
import {
  failJob,
  findJob,
  formerEnd,
  interruptExpiredJobs,
  renewLease,
  requestJob,
  showJob,
  takeJob,
  type Job,
  type RunningJob,
} from './job-store.ts'
import type { SyncObserver } from './metrics.ts'
import { lostJob, sync, type SyncDependencies, type SyncOptions } from './sync.ts'

/** A process that has not renewed the lease of its job for this long is dead. */
export const LEASE_MS = 20_000

const RENEWALS_PER_LEASE = 5

export interface JobDependencies extends SyncDependencies {
  readonly log: Log
  readonly leaseMs: number
  /** Maximum milliseconds of a sync. */
  readonly syncMs: number
  /** Receives failed scheduled syncs, and their recovery. */
  readonly notify?: Notify
  readonly observer?: SyncObserver
}

/** Runs a job that `runner` has taken, and records its end. If the store fails, the lease expires. */
export async function runJob(
  job: Job,
  runner: string,
  options: SyncOptions,
  dependencies: JobDependencies,
): Promise<void> {
  const { store, log, syncMs, observer } = dependencies
  const start = performance.now()
  const running: RunningJob = { id: job.id, runner }
  const about = { job_id: job.id, account_id: job.account_id }
  const ending = new AbortController()
  const late = new SyncFailure('timed_out', `not done within ${syncMs} ms`)
  const deadline = setTimeout(() => ending.abort(late), syncMs)
  const lease = keepLease(running, ending, dependencies)
  try {
    const signal = AbortSignal.any([options.signal, ending.signal])
    const { warnings, ...counts } = await sync(running, job.account_id, { ...options, signal }, dependencies)
    const level = warnings.length > 0 ? 'warn' : 'info'
    log[level]({ ...about, ...counts, ...(warnings.length > 0 && { warnings }) }, 'directory sync succeeded')
    observer?.groupsChanged({ written: counts.changed, deleted: counts.deleted })
    await reportEnd({ ...job, status: 'succeeded' }, dependencies, performance.now() - start)
  } catch (error) {
    const fault = asFailure(error)
    const level = fault.failure === 'internal' ? 'error' : 'warn'
    log[level]({ ...about, failure: fault.failure, err: fault }, 'directory sync failed')
    await recordFailure(running, fault.failure, dependencies, performance.now() - start)
  } finally {
    clearTimeout(deadline)
    clearInterval(lease)
    await sweepMembers(store, job.account_id).catch((error: unknown) =>
      log.error({ ...about, err: error }, 'unused lists of members could not be deleted'),
    )
  }
}

async function recordFailure(
  running: RunningJob,
  failure: Failure,
  dependencies: JobDependencies,
  ms: number,
): Promise<void> {
  const { store, clock, log } = dependencies
  try {
    const ended = await failJob(store, running, { failure, now: clock() })
    // A job that another process ended as interrupted was counted there.
    if (ended !== undefined) await reportEnd(ended, dependencies, ms)
  } catch (error) {
    log.error({ job_id: running.id, err: error }, 'the end of a directory sync could not be recorded')
  }
}

/** Counts the end of a job, and sends a notice of a scheduled one if it fails first or succeeds again. */
export async function reportEnd(
  job: Job,
  { store, observer, notify }: JobDependencies,
  ms?: number,
): Promise<void> {
  const outcome = job.status === 'succeeded' ? 'succeeded' : (job.failure ?? 'internal')
  observer?.jobFinished({ outcome, ...(ms !== undefined && { ms }) })
  if (notify !== undefined && job.scheduled) await noticeChange(job, store, notify)
}

async function noticeChange(job: Job, store: Store, notify: Notify): Promise<void> {
  const hadFailed = (await formerEnd(store, job).catch(() => undefined)) === 'failed'
  if (hadFailed !== (job.status === 'succeeded')) return
  const connection = await findConnection(store, job.account_id).catch(() => undefined)
  const account = connection?.account ?? job.account_id
  const about = `The scheduled directory sync of account "${account}"`
  void notify({
    event: hadFailed ? 'sync_recovered' : 'sync_failed',
    message: hadFailed ? `${about} succeeds again.` : `${about} failed. ${showJob(job).error_message ?? ''}`,
    account,
    job_id: job.id,
  })
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

function asFailure(error: unknown): SyncFailure {
  if (error instanceof SyncFailure) return error
  return new SyncFailure('internal', String(error), { cause: error })
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
    const open = await requestJob(store, accountId, clock())
    if (open === undefined) throw new OperatorError('The connection was removed a moment ago')
    const job = await takeJob(store, { id: open.id, runner }, { now: clock(), leaseMs })
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
