/**
 * Runs sync jobs: the queued and scheduled ones of a service, and one of a command. All state is in the store, so that
 * processes share the work and a restart loses nothing.
 */
import { Counter, type Registry } from 'prom-client'
import { UsageError } from '../../pipeline/program/program.ts'
import { sendOverHttp } from '../../pipeline/program/webhook.ts'
import { cronSchedule } from '../process/cron-schedule.ts'
import { createSerialQueue } from '../process/serial-queue.ts'
import type { Queries } from '../store/store.ts'
import { SYNC_LIMITS } from './client.ts'
import {
  advanceSchedule,
  dueConnections,
  findConnection,
  removeConnection,
  type Connection,
} from './connections.ts'
import { lostJob, SyncFailure } from './failures.ts'
import { eraseGroups, sweepMembers } from './groups.ts'
import {
  endJob,
  eraseReports,
  findJob,
  formerJob,
  holdJob,
  openJob,
  requestJob,
  showJob,
  waitingJobs,
  type Job,
} from './job-store.ts'
import { runSync, type SyncDependencies, type SyncOptions } from './sync.ts'

/** A process that has not renewed the lease of its job for this long is dead. */
const LEASE_MS = 20_000

/** How often a process renews a lease, and polls for work, within that time. */
const TURNS_PER_LEASE = 10

export type JobDependencies = SyncDependencies & {
  readonly leaseMs: number
  /** The address that gets a notice of a failed scheduled sync, and of recovery. */
  readonly webhook?: string | undefined
  /** Counts jobs by their outcome. */
  readonly jobCounter?: Counter<'outcome'>
}

/** The limits of syncs that may take so many minutes each. */
export function syncDefaults(minutes: number) {
  return { limits: SYNC_LIMITS, leaseMs: LEASE_MS, syncMs: minutes * 60_000 }
}

export type SyncJobs = ReturnType<typeof createSyncJobs>

/** Runs up to `concurrent` syncs of different accounts at the same time. */
export function createSyncJobs(dependencies: JobDependencies, concurrent: number) {
  const { store, clock, log, leaseMs } = dependencies
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()
  const enqueue = createSerialQueue()
  let isWaiting = false
  let timer: NodeJS.Timeout | undefined

  async function poll(): Promise<void> {
    isWaiting = false
    for (const queued of await endExpired(dependencies)) {
      if (running.size < concurrent && !stopping.signal.aborted) await start(queued)
    }
    // Last, since an interrupted job would stand for the due one. The next poll takes their jobs.
    for (const connection of await dueConnections(store, clock())) await startDue(connection, dependencies)
  }

  async function start(queued: Job): Promise<void> {
    const job = await holdJob(store, queued, clock(), leaseMs)
    if (job === undefined) return
    const { signal } = stopping
    const work = runJob(job, { signal, allowDeletions: false }, dependencies).finally(() => {
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
      timer = setInterval(wake, leaseMs / TURNS_PER_LEASE)
    },
    /** The open job of the account, or a new one; undefined without a directory (CONTRACT 5). */
    async request(accountId: string): Promise<Job | undefined> {
      const job = await store.transaction((queries) => requestJob(queries, accountId, clock()))
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

/**
 * Runs a sync of the account in this process; resolves to its finished job.
 * @throws UsageError if another process is syncing the account.
 */
export async function syncNow(accountId: string, options: SyncOptions, dependencies: JobDependencies) {
  const { store, clock, leaseMs } = dependencies
  await endExpired(dependencies)
  const job = await store.transaction(async (queries) => {
    const open = await requestJob(queries, accountId, clock())
    return open?.status === 'queued' ? await holdJob(queries, open, clock(), leaseMs) : undefined
  })
  if (job === undefined)
    throw new UsageError('Another process is syncing the account: sync again once that has ended')
  await runJob(job, options, dependencies)
  return (await findJob(store, accountId, job.id)) ?? job
}

/**
 * Removes the connection of an account and all its groups, deleted ones included.
 * @returns the number of erased groups and memberships.
 * @throws UsageError if there is no such account, or a sync of it is running.
 */
export async function eraseDirectory(account: string, dependencies: JobDependencies) {
  const { store } = dependencies
  const [{ id } = {}] = await store.query('SELECT id FROM accounts WHERE name = $1', [account])
  if (typeof id !== 'string')
    throw new UsageError(`There is no account "${account}": npm run -s keys -- list shows them`)
  await endExpired(dependencies)
  const erased = await store.transaction(async (queries) => {
    // First, since a sync ends by locking the connection. A queued one fails without it.
    await removeConnection(queries, account)
    if ((await openJob(queries, id))?.status === 'running')
      throw new UsageError(`A sync of account "${account}" is running: erase again once it has ended`)
    await eraseReports(queries, id)
    return await eraseGroups(queries, id)
  })
  await sweepMembers(store, id)
  return erased
}

/** Requests a due job. Of several processes one does; several missed times give one job. */
async function startDue(connection: Connection, { store, clock, log }: JobDependencies): Promise<void> {
  const { account_id, schedule } = connection
  try {
    const next = schedule === null ? undefined : cronSchedule(schedule).next(clock())
    // In one transaction: a process that dies in between would lose the sync.
    await store.transaction(async (queries) => {
      if (await advanceSchedule(queries, connection, next))
        await requestJob(queries, account_id, clock(), true)
    })
  } catch (error) {
    log.error({ account_id, err: error }, 'a scheduled directory sync could not be started')
  }
}

/** Ends the jobs of dead processes; resolves to the queued ones. */
async function endExpired(dependencies: JobDependencies): Promise<readonly Job[]> {
  const { store, clock } = dependencies
  const waiting = await waitingJobs(store, clock())
  for (const job of waiting.filter(({ status }) => status === 'running')) {
    await reportEnd(await endJob(store, job, { failure: 'interrupted' }, clock()), dependencies)
    await sweepMembers(store, job.account_id)
  }
  return waiting.filter(({ status }) => status === 'queued')
}

/** Runs a job that this process has taken, and records its end. If the store fails, the lease expires. */
async function runJob(job: Job, options: SyncOptions, dependencies: JobDependencies): Promise<void> {
  const { store, clock, log, leaseMs } = dependencies
  const about = { job_id: job.id, account_id: job.account_id }
  const failed = (what: string) => (error: unknown) => log.error({ ...about, err: error }, what)
  const ending = new AbortController()
  const signal = AbortSignal.any([options.signal, ending.signal])
  const lease = setInterval(() => {
    holdJob(store, job, clock(), leaseMs)
      .then((held) => held || ending.abort(lostJob()))
      .catch(failed('the lease of a directory sync could not be renewed'))
  }, leaseMs / TURNS_PER_LEASE)
  const fail = async (error: unknown) => {
    const fault =
      error instanceof SyncFailure ? error : new SyncFailure('internal', String(error), { cause: error })
    const { failure } = fault
    log[failure === 'internal' ? 'error' : 'warn']({ ...about, failure, err: fault }, 'directory sync failed')
    return await endJob(store, job, { failure }, clock())
  }
  await runSync(job, { ...options, signal }, dependencies)
    .catch(fail)
    .then((ended) => reportEnd(ended, dependencies))
    .catch(failed('the end of a directory sync could not be recorded'))
  clearInterval(lease)
  await sweepMembers(store, job.account_id).catch(failed('unused lists of members could not be deleted'))
}

/** Counts a job that this process ended, and sends the notice of a scheduled one, if any; never rejects. */
async function reportEnd(job: Job | undefined, { store, jobCounter, webhook, log }: JobDependencies) {
  if (job === undefined) return
  jobCounter?.inc({ outcome: job.failure ?? 'succeeded' })
  if (webhook === undefined || job.scheduled === 0) return
  const failed = (error: unknown) =>
    log.error({ job_id: job.id, err: error }, 'the notice of a directory sync could not be sent')
  const notice = await noticeOf(job, store).catch(failed)
  // An address may hold a secret, but the error does not quote it.
  if (notice !== undefined) sendOverHttp(webhook, notice).catch(failed)
}

/** The notice of a scheduled job that is the first to fail, or the first to succeed again. */
async function noticeOf(job: Job, store: Queries) {
  const hadFailed = (await formerJob(store, job))?.status === 'failed'
  if (hadFailed === (job.status === 'failed')) return undefined
  const account = (await findConnection(store, job.account_id))?.account ?? job.account_id
  const about = `The scheduled directory sync of account "${account}"`
  const [event, message] = hadFailed
    ? ['sync_recovered', `${about} succeeds again.`]
    : ['sync_failed', `${about} failed. ${showJob(job).error_message}`]
  return { event, message, account, job_id: job.id }
}

/** The counter of sync jobs, in `registry`: never an account, an address or what a directory sent. */
export function createJobCounter(registry: Registry) {
  const help = 'Sync jobs: succeeded, or the cause of the failure.'
  return new Counter({ name: 'scim_jobs_total', help, labelNames: ['outcome'], registers: [registry] })
}
