/**
 * Runs sync jobs: the queued and scheduled ones of a service, and one of a command. All state is in the store, so that
 * processes share the work and a restart loses nothing.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../http/errors.ts'
import { cronSchedule } from '../process/cron-schedule.ts'
import type { Log } from '../process/log.ts'
import { createSerialQueue } from '../process/serial-queue.ts'
import type { Notify } from '../process/webhook.ts'
import { advanceSchedule, dueConnections, findConnection, type Connection } from './connections.ts'
import { SyncFailure } from './failures.ts'
import { sweepMembers } from './groups.ts'
import {
  endJob,
  findJob,
  findWork,
  formerJob,
  renewLease,
  requestJob,
  showJob,
  takeJob,
  type Job,
  type Runner,
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

const UNATTENDED = { allowDeletions: false, progress: () => undefined }

export type SyncJobs = ReturnType<typeof createSyncJobs>

/** Runs up to `concurrent` syncs of different accounts at the same time. */
export function createSyncJobs(
  dependencies: JobDependencies,
  { concurrent }: { readonly concurrent: number },
) {
  const { store, clock, log, leaseMs } = dependencies
  const runner = newRunner(dependencies)
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()
  const enqueue = createSerialQueue()
  let isWaiting = false
  let timer: NodeJS.Timeout | undefined

  async function poll(): Promise<void> {
    isWaiting = false
    for (const job of await findWork(store, clock())) {
      if (job.status === 'running') await interrupt(job, dependencies)
      else if (running.size < concurrent && !stopping.signal.aborted) await start(job)
    }
    // Last, since an interrupted job would stand for the due one. The next poll takes their jobs.
    for (const connection of await dueConnections(store, clock())) await startDue(connection, dependencies)
  }

  async function start(queued: Job): Promise<void> {
    const job = await takeJob(store, queued, runner, clock())
    if (job === undefined) return
    const work = runJob(job, runner, { ...UNATTENDED, signal: stopping.signal }, dependencies).finally(() => {
      running.delete(work)
      wake()
    })
    running.add(work)
  }

  // One poll at a time, and at most one queued: two at once could take too many jobs.
  function wake(): void {
    if (isWaiting || stopping.signal.aborted) return
    isWaiting = true
    enqueue(poll).catch((error: unknown) => log.error({ err: error }, 'sync jobs could not be checked'))
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
      await enqueue(() => Promise.all(running))
    },
  }
}

function newRunner({ leaseMs }: Pick<JobDependencies, 'leaseMs'>): Runner {
  return { id: randomUUID(), leaseMs }
}

/** Runs a sync of the account in this process, after any open one; resolves to its finished job. */
export async function syncNow(
  accountId: string,
  options: SyncOptions,
  dependencies: JobDependencies & { readonly note: (line: string) => void },
): Promise<Job> {
  const { store, clock, note, leaseMs } = dependencies
  const runner = newRunner(dependencies)
  let waitedFor: string | undefined
  for (;;) {
    options.signal.throwIfAborted()
    const open = await store.transaction((queries) => requestJob(queries, accountId, { now: clock() }))
    if (open === undefined) throw new OperatorError('The connection was removed a moment ago')
    const job = await takeJob(store, open, runner, clock())
    if (job !== undefined) {
      await runJob(job, runner, options, dependencies)
      return (await findJob(store, accountId, job.id)) ?? job
    }
    if (open.id !== waitedFor) note(`Job ${open.id} is running in another process; waiting for its end.`)
    waitedFor = open.id
    await interrupt(open, dependencies)
    await sleep(leaseMs / RENEWALS_PER_LEASE)
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

/** Ends a job if its lease has expired. */
async function interrupt(job: Job, dependencies: JobDependencies): Promise<void> {
  const { store, clock } = dependencies
  const ended = await endJob(store, job, undefined, { failure: 'interrupted', now: clock() })
  if (ended !== undefined) await reportEnd(ended, dependencies)
}

/** Runs a job that `runner` has taken, and records its end. If the store fails, the lease expires. */
async function runJob(
  job: Job,
  runner: Runner,
  options: SyncOptions,
  dependencies: JobDependencies,
): Promise<void> {
  const { store, clock, log, syncMs, metrics } = dependencies
  const start = performance.now()
  const about = { job_id: job.id, account_id: job.account_id }
  const ending = new AbortController()
  const signal = AbortSignal.any([options.signal, ending.signal])
  const late = new SyncFailure('timed_out', `not done within ${syncMs} ms`)
  const deadline = setTimeout(() => ending.abort(late), syncMs)
  const lease = setInterval(() => void renew(), runner.leaseMs / RENEWALS_PER_LEASE)
  const renew = async () => {
    try {
      if (!(await renewLease(store, job, runner, clock()))) ending.abort(lostJob())
    } catch (error) {
      log.error({ ...about, err: error }, 'the lease of a directory sync could not be renewed')
    }
  }
  try {
    const { ended, changed, warnings } = await sync(job, runner, { ...options, signal }, dependencies)
    const { synced_groups: synced, deleted_groups: deleted } = ended
    log[warnings.length > 0 ? 'warn' : 'info'](
      { ...about, synced, deleted, changed, ...(warnings.length > 0 && { warnings }) },
      'directory sync succeeded',
    )
    metrics?.groupsChanged({ changed, deleted: deleted ?? 0 })
    await reportEnd(ended, dependencies, performance.now() - start)
  } catch (error) {
    const fault =
      error instanceof SyncFailure ? error : new SyncFailure('internal', String(error), { cause: error })
    const { failure } = fault
    log[failure === 'internal' ? 'error' : 'warn']({ ...about, failure, err: fault }, 'directory sync failed')
    try {
      const ended = await endJob(store, job, runner, { failure, now: clock() })
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

/** Counts the end of a job, and sends a notice of a scheduled one if it fails first or succeeds again. */
async function reportEnd(job: Job, dependencies: JobDependencies, ms?: number): Promise<void> {
  const { store, metrics, notify, log } = dependencies
  metrics?.jobFinished(job.failure ?? 'succeeded', ms)
  if (notify === undefined || job.scheduled === 0) return
  try {
    const hadFailed = (await formerJob(store, job))?.status === 'failed'
    if (hadFailed === (job.status === 'failed')) return
    const account = (await findConnection(store, job.account_id))?.account ?? job.account_id
    const about = `The scheduled directory sync of account "${account}"`
    const [event, message] = hadFailed
      ? ['sync_recovered', `${about} succeeds again.`]
      : ['sync_failed', `${about} failed. ${showJob(job).error_message}`]
    void notify({ event, message, account, job_id: job.id })
  } catch (error) {
    log.error({ job_id: job.id, err: error }, 'the notice of a directory sync could not be sent')
  }
}
