/**
 * Sync jobs in the store: at most one open job per account; each transition is one statement. A running job has a lease
 * that its process renews: a job with an expired lease was interrupted.
 */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Queries } from '../store/store.ts'
import { FAILURES, type Failure } from './failures.ts'
import type { PageWanted } from './groups.ts'
import { reportOf, reportSchema, type Report } from './plan.ts'

const jobSchema = z.object({
  id: z.uuid(),
  account_id: z.string(),
  status: z.enum(['queued', 'running', 'succeeded', 'failed']),
  synced_groups: z.number().nullable(),
  deleted_groups: z.number().nullable(),
  // A cause of another version counts as internal.
  failure: z
    .custom<Failure>((cause) => Object.hasOwn(FAILURES, String(cause)))
    .nullable()
    .catch('internal'),
  created_at: z.string(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  scheduled: z.number(),
})
const jobsSchema = z.array(jobSchema)

/** A job; times are ISO 8601 UTC with milliseconds. */
export type Job = z.infer<typeof jobSchema>

/** A running job and its process. */
export interface RunningJob {
  readonly id: string
  readonly runner: string
}

/** A lease from `now` on. */
export interface Lease {
  readonly now: Date
  readonly leaseMs: number
}

const COLUMNS = Object.keys(jobSchema.shape).join(', ')
const OF_ACCOUNT = `SELECT ${COLUMNS} FROM scim_sync_jobs WHERE account_id = $1`
const HAS_CONNECTION = 'SELECT 1 AS found FROM scim_connections WHERE account_id = $1'
const OPEN_JOB = `${OF_ACCOUNT} AND status IN ('queued', 'running')`
const ADD = `
  INSERT INTO scim_sync_jobs (id, account_id, status, created_at, scheduled)
  VALUES ($1, $2, 'queued', $3, $4)
  RETURNING ${COLUMNS}`
const FORGET = 'DELETE FROM scim_sync_jobs WHERE account_id = $1 AND finished_at < $2'
const FIND = `${OF_ACCOUNT} AND id = $2`
const LIST = `${OF_ACCOUNT} ORDER BY created_at DESC, id LIMIT $2 OFFSET $3`
const COUNT = 'SELECT count(*) AS total FROM scim_sync_jobs WHERE account_id = $1'
const NEXT = "SELECT id FROM scim_sync_jobs WHERE status = 'queued' ORDER BY created_at, id LIMIT 1"
// Clocks of machines may differ, but no job may start before its creation or end before its start.
const STARTED_AT = 'CASE WHEN created_at > $2 THEN created_at ELSE $2 END'
const FINISHED_AT = 'CASE WHEN started_at > $2 THEN started_at ELSE $2 END'
const TAKE = `
  UPDATE scim_sync_jobs SET status = 'running', runner = $3, lease_until = $4, started_at = ${STARTED_AT}
  WHERE status = 'queued' AND id = $1
  RETURNING ${COLUMNS}`
const RENEW = `
  UPDATE scim_sync_jobs SET lease_until = $3 WHERE id = $1 AND status = 'running' AND runner = $2 RETURNING id`
const SUCCEED = `
  UPDATE scim_sync_jobs SET status = 'succeeded', synced_groups = $4, deleted_groups = $5, report = $6,
    finished_at = ${FINISHED_AT}
  WHERE id = $1 AND status = 'running' AND runner = $3 RETURNING id`
const FAIL = `
  UPDATE scim_sync_jobs SET status = 'failed', failure = $4, finished_at = ${FINISHED_AT}
  WHERE id = $1 AND status = 'running' AND runner = $3 RETURNING ${COLUMNS}`
// A SELECT first, since an UPDATE takes SQLite's write lock even without a row to change.
const EXPIRED = "SELECT id FROM scim_sync_jobs WHERE status = 'running' AND lease_until < $1"
const INTERRUPT = `
  UPDATE scim_sync_jobs SET status = 'failed', failure = 'interrupted', finished_at = ${FINISHED_AT}
  WHERE id = $1 AND status = 'running' AND lease_until < $2 RETURNING ${COLUMNS}`
const REPORT = 'SELECT report FROM scim_sync_jobs WHERE account_id = $1 AND id = $2'
const FORMER = `
  ${OF_ACCOUNT} AND id <> $2 AND scheduled = 1 AND finished_at IS NOT NULL AND created_at <= $3
  ORDER BY created_at DESC, id LIMIT 1`

// How long finished jobs can be read.
const RETENTION_MS = 90 * 86_400_000

/** A job for its account: always all eight keys (CONTRACT 5). */
export function showJob(job: Job) {
  return {
    id: job.id,
    status: job.status,
    synced_groups: job.synced_groups,
    deleted_groups: job.deleted_groups,
    error_message: job.failure === null ? null : FAILURES[job.failure],
    created_at: job.created_at,
    started_at: job.started_at,
    finished_at: job.finished_at,
  }
}

/**
 * The open job of the account, or a new one; undefined without a directory. Deletes jobs that finished 90 days ago. Call
 * it in a transaction.
 */
export async function requestJob(
  queries: Queries,
  accountId: string,
  { now, isScheduled = false }: { readonly now: Date; readonly isScheduled?: boolean },
): Promise<Job | undefined> {
  if ((await queries.query(HAS_CONNECTION, [accountId])).length === 0) return undefined
  await queries.query(FORGET, [accountId, new Date(now.getTime() - RETENTION_MS).toISOString()])
  const open = firstOf(await queries.query(OPEN_JOB, [accountId]))
  if (open !== undefined) return open
  return firstOf(await queries.query(ADD, [randomUUID(), accountId, now.toISOString(), Number(isScheduled)]))
}

/** The job with this id, if it belongs to the account. */
export async function findJob(queries: Queries, accountId: string, id: string): Promise<Job | undefined> {
  return firstOf(await queries.query(FIND, [accountId, id]))
}

/** The jobs of an account, newest first, and their total. */
export async function listJobs(queries: Queries, accountId: string, { limit, offset }: PageWanted) {
  const rows = await queries.query(LIST, [accountId, limit, offset])
  const [count] = await queries.query(COUNT, [accountId])
  return {
    data: jobsSchema.parse(rows).map(showJob),
    total_count: z.object({ total: z.number() }).parse(count).total,
  }
}

/** Takes this job, or the oldest queued one; undefined if there is none, or another process was faster. */
export async function takeJob(
  queries: Queries,
  runner: string,
  lease: Lease,
  wanted?: string,
): Promise<Job | undefined> {
  // A SELECT first, as for expired leases.
  const id = wanted ?? idsOf(await queries.query(NEXT))[0]
  if (id === undefined) return undefined
  return firstOf(await queries.query(TAKE, [id, lease.now.toISOString(), runner, endOf(lease)]))
}

/** Renews the lease of a job; false if the job belongs to another process, or is over. */
export async function renewLease(
  queries: Queries,
  { id, runner }: RunningJob,
  lease: Lease,
): Promise<boolean> {
  return (await queries.query(RENEW, [id, runner, endOf(lease)])).length > 0
}

interface Success {
  readonly synced: number
  readonly deleted: number
  readonly report: Report
  readonly now: Date
}

/** Marks a job as succeeded; false if it belongs to another process, or is over. */
export async function succeedJob(
  queries: Queries,
  { id, runner }: RunningJob,
  { synced, deleted, report, now }: Success,
): Promise<boolean> {
  const values = [id, now.toISOString(), runner, synced, deleted, JSON.stringify(report)]
  return (await queries.query(SUCCEED, values)).length > 0
}

/** Marks a job as failed; undefined if it belongs to another process, or is over. */
export async function failJob(
  queries: Queries,
  { id, runner }: RunningJob,
  { failure, now }: { readonly failure: Failure; readonly now: Date },
): Promise<Job | undefined> {
  return firstOf(await queries.query(FAIL, [id, now.toISOString(), runner, failure]))
}

/** Marks running jobs with an expired lease as interrupted, and returns them. */
export async function interruptExpiredJobs(queries: Queries, now: Date): Promise<readonly Job[]> {
  const jobs: Job[] = []
  for (const id of idsOf(await queries.query(EXPIRED, [now.toISOString()]))) {
    jobs.push(...jobsSchema.parse(await queries.query(INTERRUPT, [id, now.toISOString()])))
  }
  return jobs
}

/** What a job of the account changed; undefined without such a job. Only a successful one changes anything. */
export async function readReport(
  queries: Queries,
  accountId: string,
  id: string,
): Promise<Report | undefined> {
  const [row] = await queries.query(REPORT, [accountId, id])
  if (row === undefined) return undefined
  const { report } = z.object({ report: z.string().nullable() }).parse(row)
  return report === null
    ? reportOf({ changes: [], deletions: [] }, [])
    : reportSchema.parse(JSON.parse(report))
}

/** The last scheduled job of the account that ended before this one. */
export async function formerJob(
  queries: Queries,
  { account_id, id, created_at }: Job,
): Promise<Job | undefined> {
  return firstOf(await queries.query(FORMER, [account_id, id, created_at]))
}

function endOf({ now, leaseMs }: Lease): string {
  return new Date(now.getTime() + leaseMs).toISOString()
}

function idsOf(rows: readonly unknown[]): string[] {
  return z
    .array(z.object({ id: z.string() }))
    .parse(rows)
    .map(({ id }) => id)
}

function firstOf(rows: readonly unknown[]): Job | undefined {
  return jobsSchema.parse(rows)[0]
}
