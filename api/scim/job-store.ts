/**
 * Sync jobs in the store: at most one open job per account; each transition is one statement. A running job has a lease
 * that its process renews: a job with an expired lease was interrupted. A job that is over never runs again, so only the
 * process that took it can renew or end it.
 */
import { randomUUID } from 'node:crypto'
import { millisecondsInDay } from 'date-fns/constants'
import { z } from 'zod'
import type { Queries, Value } from '../store/store.ts'
import { FAILURES, type Failure } from './failures.ts'
import { emptyReport, reportSchema, type Report } from './plan.ts'

// A new schema each time: the description of a shared one loses its format.
const count = () => z.int().nonnegative().nullable()
const time = z.iso.datetime({ precision: 3 })
const cause = z.custom<Failure>((name) => Object.hasOwn(FAILURES, String(name)))

/** A job for its account: always all eight keys (CONTRACT 5). */
export const jobSchema = z
  .strictObject({
    id: z.uuid(),
    status: z.enum(['queued', 'running', 'succeeded', 'failed']),
    synced_groups: count().describe('Groups present after the run; set on success.'),
    deleted_groups: count().describe('Groups deleted by the run; set on success.'),
    error_message: z.string().nullable().describe('One fixed sentence per cause; set on failure.'),
    created_at: time,
    started_at: time.nullable(),
    finished_at: time.nullable(),
  })
  .meta({ id: 'ScimSyncJob' })

const rowSchema = jobSchema.omit({ error_message: true }).extend({
  account_id: z.string(),
  scheduled: z.number(),
  // A cause of another version counts as internal.
  failure: cause.nullable().catch('internal'),
})

/** A job; times are ISO 8601 UTC with milliseconds. */
export type Job = z.infer<typeof rowSchema>

/** How many days finished jobs can be read. */
const RETENTION_DAYS = 90

const COLUMNS = rowSchema.keyof().options.join(', ')
const OF_ACCOUNT = 'scim_sync_jobs WHERE account_id = $1'
const SELECT = `SELECT ${COLUMNS} FROM ${OF_ACCOUNT}`
const ADD = `
  INSERT INTO scim_sync_jobs (id, account_id, status, created_at, scheduled)
  SELECT $1, account_id, 'queued', $3, $4 FROM scim_connections WHERE account_id = $2 RETURNING ${COLUMNS}`
// A read, since an UPDATE takes SQLite's write lock even without a row to change.
const WAITING = `
  SELECT ${COLUMNS} FROM scim_sync_jobs WHERE status = 'queued' OR (status = 'running' AND lease_until < $1)
  ORDER BY status DESC, created_at, id LIMIT 100`
// Clocks of machines may differ, but no job may start before its creation or end before its start.
const HOLD = `
  UPDATE scim_sync_jobs SET status = 'running', lease_until = $4,
    started_at = coalesce(started_at, CASE WHEN created_at > $3 THEN created_at ELSE $3 END)
  WHERE id = $1 AND status = $2 RETURNING ${COLUMNS}`
const LOCK = `UPDATE scim_sync_jobs SET status = status WHERE id = $1 AND status = 'running' RETURNING id`
const END = `
  UPDATE scim_sync_jobs SET status = $3, synced_groups = $4, deleted_groups = $5, report = $6, failure = $7,
    finished_at = CASE WHEN started_at > $2 THEN started_at ELSE $2 END
  WHERE id = $1 AND status = 'running' RETURNING ${COLUMNS}`
const FORMER = `
  ${SELECT} AND id <> $2 AND scheduled = 1 AND finished_at IS NOT NULL AND created_at <= $3
  ORDER BY created_at DESC, id LIMIT 1`

/** A job for its account. */
export function showJob(job: Job): z.infer<typeof jobSchema> {
  return jobSchema.strip().parse({ ...job, error_message: job.failure && FAILURES[job.failure] })
}

/** The open job of the account, or a new one; undefined without a directory. Deletes old jobs. For a transaction. */
export async function requestJob(queries: Queries, accountId: string, now: Date, isScheduled = false) {
  const kept = new Date(now.getTime() - RETENTION_DAYS * millisecondsInDay).toISOString()
  await queries.query(`DELETE FROM ${OF_ACCOUNT} AND finished_at < $2`, [accountId, kept])
  const values = [randomUUID(), accountId, now.toISOString(), Number(isScheduled)]
  return (await openJob(queries, accountId)) ?? (await jobs(queries, ADD, values))[0]
}

/** The queued or running job of the account. */
export async function openJob(queries: Queries, accountId: string): Promise<Job | undefined> {
  return (await jobs(queries, `${SELECT} AND status IN ('queued', 'running')`, [accountId]))[0]
}

export type PageWanted = { readonly limit: number; readonly offset: number }

/** A page of the rows of an account, and their total. `from` is the end of a query with the account as `$1`. */
export async function selectPage<Shown extends z.ZodType>(
  queries: Queries,
  accountId: string,
  { limit, offset }: PageWanted,
  { select, from, order, schema }: { readonly select: string; from: string; order: string; schema: Shown },
) {
  const page = `SELECT ${select} FROM ${from} ORDER BY ${order} LIMIT $2 OFFSET $3`
  const rows = await queries.query(page, [accountId, limit, offset])
  const [total] = await queries.query(`SELECT count(*) AS total_count FROM ${from}`, [accountId])
  return { data: z.array(schema).parse(rows), ...z.object({ total_count: z.number() }).parse(total) }
}

/** The job with this id, if it belongs to the account. */
export async function findJob(queries: Queries, accountId: string, id: string): Promise<Job | undefined> {
  return (await jobs(queries, `${SELECT} AND id = $2`, [accountId, id]))[0]
}

/** The jobs of an account, newest first, and their total. */
export async function listJobs(queries: Queries, accountId: string, page: PageWanted) {
  const rows = { select: COLUMNS, from: OF_ACCOUNT, order: 'created_at DESC, id', schema: rowSchema }
  const { data, total_count } = await selectPage(queries, accountId, page, rows)
  return { data: data.map(showJob), total_count }
}

/** What a job of the account changed; undefined without such a job. Only a successful one changes anything. */
export async function readReport(queries: Queries, accountId: string, id: string) {
  const [row] = await queries.query(`SELECT report FROM ${OF_ACCOUNT} AND id = $2`, [accountId, id])
  if (row === undefined) return undefined
  const { report } = z.object({ report: z.string().nullable() }).parse(row)
  return report === null ? emptyReport() : reportSchema.parse(JSON.parse(report))
}

/** Deletes what the jobs of the account changed, which has names of groups and members. */
export async function eraseReports(queries: Queries, accountId: string): Promise<void> {
  await queries.query('UPDATE scim_sync_jobs SET report = NULL WHERE account_id = $1', [accountId])
}

/** The jobs that wait for a process, oldest first: running ones with an expired lease, then queued ones. */
export async function waitingJobs(queries: Queries, now: Date): Promise<readonly Job[]> {
  return await jobs(queries, WAITING, [now.toISOString()])
}

/** Takes a queued job for as long as the lease, or renews the lease of a taken one; undefined if another process was faster. */
export async function holdJob(queries: Queries, { id, status }: Job, now: Date, leaseMs: number) {
  const until = new Date(now.getTime() + leaseMs)
  return (await jobs(queries, HOLD, [id, status, now.toISOString(), until.toISOString()]))[0]
}

/** Locks a running job until the transaction ends, so that nobody ends it before; false if it is over. */
export async function lockJob(queries: Queries, id: string): Promise<boolean> {
  return (await queries.query(LOCK, [id])).length > 0
}

type Outcome = Partial<Pick<Job, 'failure' | 'synced_groups'>> & { readonly report?: Report }

/** Records the end of a running job, with its failure or its changes; undefined if the job was over. */
export async function endJob(queries: Queries, { id }: Job, outcome: Outcome, now: Date) {
  const { failure = null, synced_groups = null, report } = outcome
  const status = failure === null ? 'succeeded' : 'failed'
  const changes = report === undefined ? [null, null] : [report.groups_deleted.count, JSON.stringify(report)]
  const values = [id, now.toISOString(), status, synced_groups, ...changes, failure]
  return (await jobs(queries, END, values))[0]
}

/** The last scheduled job of the account that ended before this one. */
export async function formerJob(queries: Queries, { account_id, id, created_at }: Job) {
  return (await jobs(queries, FORMER, [account_id, id, created_at]))[0]
}

async function jobs(queries: Queries, sql: string, values: readonly Value[]): Promise<readonly Job[]> {
  return z.array(rowSchema).parse(await queries.query(sql, values))
}
