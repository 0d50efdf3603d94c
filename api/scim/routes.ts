/** Directory sync over HTTP (CONTRACT 5): starts and shows jobs, and lists the synced groups. */
import type { Request } from 'express'
import { z } from 'zod'
import type { Caller, Handler, Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import {
  badRequest,
  readParameters,
  wholeNumber,
  type ParameterTable,
  type Values,
} from '../http/protocol/query-parameters.ts'
import { GROUPS_PATH, SYNC_JOBS_PATH } from '../paths.ts'
import { queryString, sendJson } from '../http/respond.ts'
import type { Route } from '../http/route.ts'
import type { Operation } from '../openapi/operation.ts'
import type { Queries, Store } from '../store/store.ts'
import { findGroup, listGroups, listMembers, type PageWanted } from './groups.ts'
import { findJob, listJobs, readReport, showJob, type Job } from './job-store.ts'
import type { SyncJobs } from './jobs.ts'
import { SCIM_OPERATIONS } from './operations.ts'

const PAGE = {
  limit: wholeNumber(1, 100, 50),
  // Databases count rows in 64 bits, JavaScript exactly in 53.
  offset: wholeNumber(0, Number.MAX_SAFE_INTEGER, 0),
} as const satisfies ParameterTable

const POLL_AFTER_SECONDS = 2

/** Our ids are lower-case; UUIDs may be in either case (RFC 9562, section 4). */
const idSchema = z.uuid().toLowerCase()

type Named = 'sync job' | 'group'

/** The routes of directory sync; all need a management key. */
export function scimRoutes(store: Store, jobs: SyncJobs): Route[] {
  const [job, group] = [`${SYNC_JOBS_PATH}/:id`, `${GROUPS_PATH}/:id`]
  return [
    // A request body is ignored.
    {
      access: 'management',
      method: 'POST',
      path: SYNC_JOBS_PATH,
      operation: SCIM_OPERATIONS.start,
      handle: startJob(jobs),
    },
    get(SYNC_JOBS_PATH, SCIM_OPERATIONS.jobs, showPage(store, listJobs)),
    get(job, SCIM_OPERATIONS.job, readJob(store)),
    get(`${job}/changes`, SCIM_OPERATIONS.changes, showOne(store, 'sync job', readReport)),
    get(GROUPS_PATH, SCIM_OPERATIONS.groups, showPage(store, listGroups)),
    get(group, SCIM_OPERATIONS.group, showOne(store, 'group', findGroup)),
    get(`${group}/members`, SCIM_OPERATIONS.members, readGroupMembers(store)),
  ]
}

function get(path: string, operation: Operation, handle: Handler): Route {
  return { access: 'management', method: 'GET', path, operation, handle }
}

function startJob(jobs: SyncJobs): Handler {
  return async (_request, reply) => {
    const job = await jobs.request(callerOf(reply).accountId)
    if (job === undefined) {
      throw new ApiError(404, 'No directory is configured for this account; an operator connects one')
    }
    reply.set('Location', `${SYNC_JOBS_PATH}/${job.id}`)
    sendJob(reply, 202, job)
  }
}

function readJob(store: Store): Handler {
  return async (request, reply) => {
    const job = await findJob(store, callerOf(reply).accountId, idOf(request, 'sync job'))
    if (job === undefined) throw unknown('sync job')
    sendJob(reply, 200, job)
  }
}

type ReadPage = (queries: Queries, accountId: string, page: PageWanted) => Promise<unknown>
type ReadOne = (queries: Queries, accountId: string, id: string) => Promise<unknown>

function showPage(store: Store, read: ReadPage): Handler {
  return async (request, reply) => {
    sendJson(reply, 200, await read(store, callerOf(reply).accountId, pageOf(request)))
  }
}

function showOne(store: Store, what: Named, read: ReadOne): Handler {
  return async (request, reply) => {
    const data = await read(store, callerOf(reply).accountId, idOf(request, what))
    if (data === undefined) throw unknown(what)
    sendJson(reply, 200, { data })
  }
}

function readGroupMembers(store: Store): Handler {
  return async (request, reply) => {
    const group = { accountId: callerOf(reply).accountId, id: idOf(request, 'group') }
    const members = await listMembers(store, group, pageOf(request))
    if (members === undefined) throw unknown('group')
    sendJson(reply, 200, members)
  }
}

function sendJob(reply: Reply, status: number, job: Job): void {
  if (job.finished_at === null) reply.set('Retry-After', String(POLL_AFTER_SECONDS))
  sendJson(reply, status, { data: showJob(job) })
}

function pageOf(request: Request): PageWanted {
  const { values, faults } = readParameters(PAGE, queryString(request))
  if (faults.length > 0) throw badRequest(faults)
  const { limit, offset }: Values<typeof PAGE> = values
  return { limit: limit ?? PAGE.limit.default, offset: offset ?? 0 }
}

function callerOf(reply: Reply): Caller {
  const { caller } = reply.locals
  if (caller === undefined) throw new TypeError('The routes of directory sync need an authenticated caller')
  return caller
}

// An invalid id never reaches the store: PostgreSQL rejects texts with a NUL.
function idOf(request: Request, what: Named): string {
  const { data } = idSchema.safeParse(request.params['id'])
  if (data === undefined) throw unknown(what)
  return data
}

function unknown(what: Named): ApiError {
  return new ApiError(404, `No such ${what}`)
}
