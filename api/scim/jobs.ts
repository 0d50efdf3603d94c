/**
 * The sync jobs of a service: runs queued and scheduled ones, and ends the ones of dead processes. All state is in the
 * store, so that processes share the work and a restart loses nothing.
 */
import { randomUUID } from 'node:crypto'
import { cronSchedule, type CronSchedule } from '../process/cron-schedule.ts'
import { advanceSchedule, dueConnections, readConnection } from './connections.ts'
import { SyncFailure } from './failures.ts'
import { interruptExpiredJobs, requestJob, requestJobWithin, takeNextJob, type Job } from './job-store.ts'
import { reportEnd, runJob, type JobDependencies } from './run-job.ts'

export interface SyncJobs {
  /** Starts to look for work. */
  begin(): void
  /** The open job of the account, or a new one; undefined without a directory (CONTRACT 5). */
  request(accountId: string): Promise<Job | undefined>
  /** Interrupts running jobs and waits until that is recorded. */
  close(): Promise<void>
}

/** The part of a lease after which the service looks for work again. */
const LOOKS_PER_LEASE = 10

/** Runs up to `concurrent` syncs of different accounts at the same time. */
export function createSyncJobs(
  dependencies: JobDependencies,
  { concurrent }: { readonly concurrent: number },
): SyncJobs {
  const { store, clock, log, leaseMs } = dependencies
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()
  const startDueJobs = watchSchedules(dependencies)
  const takeJobs = jobTaker(
    { most: concurrent, running, signal: stopping.signal, onEnd: () => wake() },
    dependencies,
  )
  let looking = Promise.resolve()
  let waiting = false
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    waiting = false
    try {
      for (const job of await interruptExpiredJobs(store, clock())) await reportEnd(job, dependencies)
      await startDueJobs()
      await takeJobs()
    } catch (error) {
      log.error({ err: error }, 'sync jobs could not be checked')
    }
  }

  // One look at a time, and at most one queued: two at once could take too many jobs.
  function wake(): void {
    if (waiting || stopping.signal.aborted) return
    waiting = true
    looking = looking.then(look)
  }

  return {
    begin() {
      wake()
      timer = setInterval(wake, leaseMs / LOOKS_PER_LEASE)
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
      await Promise.all(running)
    },
  }
}

interface TakerOptions {
  readonly most: number
  readonly running: Set<Promise<void>>
  readonly signal: AbortSignal
  readonly onEnd: () => void
}

/** Takes queued jobs while fewer than `most` are running. */
function jobTaker(
  { most, running, signal, onEnd }: TakerOptions,
  dependencies: JobDependencies,
): () => Promise<void> {
  const { store, clock, leaseMs } = dependencies
  // The identity of this process in the rows of its jobs.
  const runner = randomUUID()
  return async () => {
    while (running.size < most && !signal.aborted) {
      const job = await takeNextJob(store, runner, { now: clock(), leaseMs })
      if (job === undefined) return
      const options = { signal, allowDeletions: false, progress: () => undefined }
      const work = runJob(job, runner, options, dependencies).finally(() => {
        running.delete(work)
        onEnd()
      })
      running.add(work)
    }
  }
}

/** Requests due jobs; call it at intervals. Of several processes one does; several missed times give one job. */
function watchSchedules({
  store,
  clock,
  log,
}: Pick<JobDependencies, 'store' | 'clock' | 'log'>): () => Promise<void> {
  // node-cron registers a task for every parsed expression, so each is parsed once.
  const known = new Map<string, CronSchedule>()

  async function start(row: unknown): Promise<void> {
    const connection = readConnection(row)
    const expression = connection.schedule
    const schedule = expression === null ? undefined : (known.get(expression) ?? cronSchedule(expression))
    if (expression !== null && schedule !== undefined) known.set(expression, schedule)
    // In one transaction: a process that dies in between would lose the sync.
    await store.transaction(async (queries) => {
      if (await advanceSchedule(queries, connection, schedule?.next(clock())))
        await requestJobWithin(queries, connection.accountId, { now: clock(), scheduled: true })
    })
  }

  return async () => {
    for (const row of await dueConnections(store, clock())) {
      try {
        await start(row)
      } catch (error) {
        log.error({ err: error }, 'a scheduled directory sync could not be started')
      }
    }
  }
}
