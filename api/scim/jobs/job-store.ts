/** Sync jobs in the store: at most one open job per account; each transition is one statement. */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Queries, Store } from '../../store/store.ts'
import type { PageWanted } from '../groups/group-store.ts'
import { FAILURES, readFailure, type Failure } from '../failures.ts'

const jobSchema = z.object({
  id: z.uuid(),
  account_id: z.string(),
  status: z.enum(['queued', 'running', 'succeeded', 'failed']),
  synced_groups: z.number().nullable(),
  deleted_groups: z.number().nullable(),
  failure: z.string().transform(readFailure).nullable(),
  created_at: z.string(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  scheduled: z.number().transform((flag) => flag !== 0),
})

const idSchema = z.object({ id: z.string() })
const heartbeatSchema = z.object({ id: z.string(), runner: z.string(), heartbeat: z.number() })

/** A job; times are ISO 8601 UTC with milliseconds. */
export type Job = z.infer<typeof jobSchema>

const COLUMNS = `id, account_id, status, synced_groups, deleted_groups, failure, created_at, started_at, finished_at,
  scheduled`
const HAS_CONNECTION = 'SELECT 1 AS found FROM scim_connections WHERE account_id = $1'
const OPEN_JOB = `
  SELECT ${COLUMNS} FROM scim_sync_jobs WHERE account_id = $1 AND status IN ('queued', 'running')`
const ADD = `
  INSERT INTO scim_sync_jobs (id, account_id, status, created_at, heartbeat, scheduled)
  VALUES ($1, $2, 'queued', $3, 0, $4)
  RETURNING ${COLUMNS}`
const FORGET = 'DELETE FROM scim_sync_jobs WHERE account_id = $1 AND finished_at < $2'
const FIND = `SELECT ${COLUMNS} FROM scim_sync_jobs WHERE account_id = $1 AND id = $2`
const LIST = `
  SELECT ${COLUMNS} FROM scim_sync_jobs WHERE account_id = $1 ORDER BY created_at DESC, id LIMIT $2 OFFSET $3`
const COUNT = 'SELECT count(*) AS total FROM scim_sync_jobs WHERE account_id = $1'
const LAST = `
  SELECT ${COLUMNS} FROM scim_sync_jobs WHERE account_id = $1 ORDER BY created_at DESC, id LIMIT 1`
const NEXT = "SELECT id FROM scim_sync_jobs WHERE status = 'queued' ORDER BY created_at, id LIMIT 1"
// Clocks of machines may differ, but no job may start before its creation or end before its start.
const STARTED_AT = 'CASE WHEN created_at > $2 THEN created_at ELSE $2 END'
const FINISHED_AT = 'CASE WHEN started_at > $2 THEN started_at ELSE $2 END'
const TAKE = `
  UPDATE scim_sync_jobs SET status = 'running', runner = $3, started_at = ${STARTED_AT}
  WHERE status = 'queued' AND id = $1
  RETURNING ${COLUMNS}`
const BEAT = `
  UPDATE scim_sync_jobs SET heartbeat = heartbeat + 1
  WHERE id = $1 AND status = 'running' AND runner = $2 RETURNING id`
const SUCCEED = `
  UPDATE scim_sync_jobs SET status = 'succeeded', synced_groups = $3, deleted_groups = $4, finished_at = ${FINISHED_AT}
  WHERE id = $1`
const FAIL = `
  UPDATE scim_sync_jobs SET status = 'failed', failure = $4, finished_at = ${FINISHED_AT}
  WHERE id = $1 AND status = 'running' AND runner = $3 RETURNING ${COLUMNS}`
const BEATING = "SELECT id, runner, heartbeat FROM scim_sync_jobs WHERE status = 'running'"
const FAIL_ABANDONED = `
  UPDATE scim_sync_jobs SET status = 'failed', failure = 'interrupted', finished_at = ${FINISHED_AT}
  WHERE id = $1 AND status = 'running' AND heartbeat = $3 RETURNING ${COLUMNS}`

// How long finished jobs can be read.
const RETENTION_MS = 90 * 86_400_000

/** A running job and its process. */
export interface RunningJob {
  readonly id: string
  readonly runner: string
}

/** A job for its account: always all eight keys (CONTRACT 5). */
export function showJob({ failure, ...job }: Job) {
  return {
    id: job.id,
    status: job.status,
    synced_groups: job.synced_groups,
    deleted_groups: job.deleted_groups,
    error_message: failure === null ? null : FAILURES[failure],
    created_at: job.created_at,
    started_at: job.started_at,
    finished_at: job.finished_at,
  }
}

/** The open job of the account, or a new one; undefined without a directory. Deletes jobs that finished 90 days ago. */
export async function requestJob(store: Store, accountId: string, now: Date): Promise<Job | undefined> {
  return await store.transaction((queries) => requestJobWithin(queries, accountId, { now, scheduled: false }))
}

export async function requestJobWithin(
  queries: Queries,
  accountId: string,
  { now, scheduled }: { readonly now: Date; readonly scheduled: boolean },
): Promise<Job | undefined> {
  const [connection] = await queries.query(HAS_CONNECTION, [accountId])
  if (connection === undefined) return undefined
  await queries.query(FORGET, [accountId, new Date(now.getTime() - RETENTION_MS).toISOString()])
  const [open] = await queries.query(OPEN_JOB, [accountId])
  if (open !== undefined) return jobSchema.parse(open)
  return jobOf(await queries.query(ADD, [randomUUID(), accountId, now.toISOString(), Number(scheduled)]))
}

/** The job with this id, if it belongs to the account. */
export async function findJob(queries: Queries, accountId: string, id: string): Promise<Job | undefined> {
  return jobOf(await queries.query(FIND, [accountId, id]))
}

/** The jobs of an account, newest first, and their total. */
export async function listJobs(queries: Queries, accountId: string, { limit, offset }: PageWanted) {
  const [count] = await queries.query(COUNT, [accountId])
  const rows = await queries.query(LIST, [accountId, limit, offset])
  return {
    data: z.array(jobSchema).parse(rows).map(showJob),
    total_count: z.object({ total: z.number() }).parse(count).total,
  }
}

export async function lastJob(queries: Queries, accountId: string): Promise<Job | undefined> {
  return jobOf(await queries.query(LAST, [accountId]))
}

/** Takes the oldest queued job; undefined if there is none, or another process was faster. */
export async function takeNextJob(queries: Queries, runner: string, now: Date): Promise<Job | undefined> {
  // A SELECT first, since an UPDATE takes SQLite's write lock even without a row to change.
  const [next] = await queries.query(NEXT)
  return next === undefined ? undefined : await takeJob(queries, { ...idSchema.parse(next), runner }, now)
}

/** Takes this job; undefined if it is not queued. */
export async function takeJob(
  queries: Queries,
  { id, runner }: RunningJob,
  now: Date,
): Promise<Job | undefined> {
  return jobOf(await queries.query(TAKE, [id, now.toISOString(), runner]))
}

/** Advances the heartbeat of a job; false if the job belongs to another process. */
export async function beat(queries: Queries, { id, runner }: RunningJob): Promise<boolean> {
  return (await queries.query(BEAT, [id, runner])).length > 0
}

/** Marks a job as succeeded; the caller has verified with `beat`, in the same transaction, that it owns the job. */
export async function succeedJob(
  queries: Queries,
  id: string,
  { synced, deleted, now }: { readonly synced: number; readonly deleted: number; readonly now: Date },
): Promise<void> {
  await queries.query(SUCCEED, [id, now.toISOString(), synced, deleted])
}

/** Marks a job as failed; undefined if it belongs to another process. */
export async function failJob(
  queries: Queries,
  { id, runner }: RunningJob,
  { failure, now }: { readonly failure: Failure; readonly now: Date },
): Promise<Job | undefined> {
  return jobOf(await queries.query(FAIL, [id, now.toISOString(), runner, failure]))
}

/** The running jobs of all processes, with their heartbeats. */
export async function listHeartbeats(queries: Queries) {
  return z.array(heartbeatSchema).parse(await queries.query(BEATING))
}

/** Marks a job as interrupted; undefined if its heartbeat has changed. */
export async function failAbandonedJob(
  queries: Queries,
  { id, heartbeat }: Pick<z.infer<typeof heartbeatSchema>, 'id' | 'heartbeat'>,
  now: Date,
): Promise<Job | undefined> {
  return jobOf(await queries.query(FAIL_ABANDONED, [id, now.toISOString(), heartbeat]))
}

function jobOf([row]: readonly unknown[]): Job | undefined {
  return row === undefined ? undefined : jobSchema.parse(row)
}
