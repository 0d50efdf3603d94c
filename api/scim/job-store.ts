/**
 * Sync jobs in the store: at most one open job per account; each transition is one statement. A running job has a lease
 * that its process renews: a job with an expired lease was interrupted.
 */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Queries, Row } from '../store/store.ts'
import { FAILURES, type Failure } from './failures.ts'
import { readTotal, type PageWanted } from './groups.ts'
import { reportOf, reportSchema, type Report } from './plan.ts'

const rowSchema = z.object({
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

/** A job; times are ISO 8601 UTC with milliseconds. */
export type Job = z.infer<typeof rowSchema>

/** A process that runs jobs, and how long a job is its own without renewal. */
export interface Runner {
  readonly id: string
  readonly leaseMs: number
}

/** How long finished jobs can be read. */
const RETENTION_MS = 90 * 86_400_000

const COLUMNS = rowSchema.keyof().options.join(', ')
const OF_ACCOUNT = `SELECT ${COLUMNS} FROM scim_sync_jobs WHERE account_id = $1`
const HAS_CONNECTION = 'SELECT 1 AS found FROM scim_connections WHERE account_id = $1'
const ADD = `
  INSERT INTO scim_sync_jobs (id, account_id, status, created_at, scheduled) VALUES ($1, $2, 'queued', $3, $4)
  RETURNING ${COLUMNS}`
const FORGET = 'DELETE FROM scim_sync_jobs WHERE account_id = $1 AND finished_at < $2'
const LIST = `${OF_ACCOUNT} ORDER BY created_at DESC, id LIMIT $2 OFFSET $3`
const COUNT = 'SELECT count(*) AS total FROM scim_sync_jobs WHERE account_id = $1'
// A SELECT first, since an UPDATE takes SQLite's write lock even without a row to change.
const WORK = `
  SELECT ${COLUMNS} FROM scim_sync_jobs
  WHERE status = 'queued' OR (status = 'running' AND lease_until < $1) ORDER BY created_at, id LIMIT 100`
// Clocks of machines may differ, but no job may start before its creation or end before its start.
const TAKE = `
  UPDATE scim_sync_jobs SET status = 'running', runner = $2, lease_until = $4,
    started_at = CASE WHEN created_at > $3 THEN created_at ELSE $3 END
  WHERE id = $1 AND status = 'queued' RETURNING ${COLUMNS}`
const RENEW = `
  UPDATE scim_sync_jobs SET lease_until = $3 WHERE id = $1 AND runner = $2 AND status = 'running' RETURNING id`
const END = `
  UPDATE scim_sync_jobs SET status = $3, synced_groups = $4, deleted_groups = $5, report = $6, failure = $7,
    finished_at = CASE WHEN started_at > $8 THEN started_at ELSE $8 END
  WHERE id = $1 AND status = 'running'`
const END_OWN = `${END} AND runner = $2 RETURNING ${COLUMNS}`
const END_EXPIRED = `${END} AND lease_until < $2 RETURNING ${COLUMNS}`
const REPORT = 'SELECT report FROM scim_sync_jobs WHERE account_id = $1 AND id = $2'
const FORMER = `
  ${OF_ACCOUNT} AND id <> $2 AND scheduled = 1 AND finished_at IS NOT NULL AND created_at <= $3
  ORDER BY created_at DESC, id LIMIT 1`

/** A job for its account: always all eight keys (CONTRACT 5). */
export function showJob({ account_id: _account, scheduled: _scheduled, failure, ...shown }: Job) {
  const { id, status, synced_groups, deleted_groups, ...times } = shown
  const error_message = failure === null ? null : FAILURES[failure]
  return { id, status, synced_groups, deleted_groups, error_message, ...times }
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
  const [open] = await queries.query(`${OF_ACCOUNT} AND status IN ('queued', 'running')`, [accountId])
  if (open !== undefined) return rowSchema.parse(open)
  return firstOf(await queries.query(ADD, [randomUUID(), accountId, now.toISOString(), Number(isScheduled)]))
}

/** The job with this id, if it belongs to the account. */
export async function findJob(queries: Queries, accountId: string, id: string): Promise<Job | undefined> {
  return firstOf(await queries.query(`${OF_ACCOUNT} AND id = $2`, [accountId, id]))
}

/** The jobs of an account, newest first, and their total. */
export async function listJobs(queries: Queries, accountId: string, { limit, offset }: PageWanted) {
  const rows = await queries.query(LIST, [accountId, limit, offset])
  const total = await queries.query(COUNT, [accountId])
  return { data: z.array(rowSchema).parse(rows).map(showJob), total_count: readTotal(total) }
}

/** The queued jobs, oldest first, and running ones with an expired lease. */
export async function findWork(queries: Queries, now: Date): Promise<readonly Job[]> {
  return z.array(rowSchema).parse(await queries.query(WORK, [now.toISOString()]))
}

/** Takes a queued job; undefined if another process was faster. */
export async function takeJob(
  queries: Queries,
  { id }: Pick<Job, 'id'>,
  runner: Runner,
  now: Date,
): Promise<Job | undefined> {
  return firstOf(await queries.query(TAKE, [id, runner.id, now.toISOString(), leaseEnd(runner, now)]))
}

/** Renews the lease of a job; false if the job belongs to another process, or is over. */
export async function renewLease(
  queries: Queries,
  { id }: Pick<Job, 'id'>,
  runner: Runner,
  now: Date,
): Promise<boolean> {
  return (await queries.query(RENEW, [id, runner.id, leaseEnd(runner, now)])).length > 0
}

function leaseEnd({ leaseMs }: Runner, now: Date): string {
  return new Date(now.getTime() + leaseMs).toISOString()
}

/** What a job has come to. */
interface Outcome {
  readonly now: Date
  readonly failure?: Failure
  readonly success?: Pick<Job, 'synced_groups' | 'deleted_groups'> & { readonly report: Report }
}

/**
 * Records the end of a job of `runner`, or without one of a job whose lease has expired. Undefined if the job belongs to
 * another process, or is over.
 */
export async function endJob(
  queries: Queries,
  { id }: Pick<Job, 'id'>,
  runner: Pick<Runner, 'id'> | undefined,
  { now, failure, success }: Outcome,
): Promise<Job | undefined> {
  const time = now.toISOString()
  const [sql, owner] = runner === undefined ? [END_EXPIRED, time] : [END_OWN, runner.id]
  const { synced_groups = null, deleted_groups = null, report } = success ?? {}
  const numbers = [synced_groups, deleted_groups, report === undefined ? null : JSON.stringify(report)]
  const status = success === undefined ? 'failed' : 'succeeded'
  return firstOf(await queries.query(sql, [id, owner, status, ...numbers, failure ?? null, time]))
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
  return report === null ? reportOf([], []) : reportSchema.parse(JSON.parse(report))
}

/** The last scheduled job of the account that ended before this one. */
export async function formerJob(
  queries: Queries,
  { account_id, id, created_at }: Job,
): Promise<Job | undefined> {
  return firstOf(await queries.query(FORMER, [account_id, id, created_at]))
}

function firstOf([row]: readonly Row[]): Job | undefined {
  return row === undefined ? undefined : rowSchema.parse(row)
}
