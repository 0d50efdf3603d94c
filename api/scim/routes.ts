/** Directory sync over HTTP (CONTRACT 5): starts and shows jobs, and lists the synced groups. */
import type { Request } from 'express'
import { z } from 'zod'
import type { Caller, Handler, Reply } from '../http/call.ts'
import type { Route } from '../http/route.ts'
import { ApiError } from '../http/errors.ts'
import { readParameters, wholeNumber, type ParameterTable, type Values } from '../http/query-parameters.ts'
import { queryString, sendJson } from '../http/respond.ts'
import { ENVELOPE, type Operation, type ReplyDescription } from '../openapi/operation.ts'
import { GROUPS_PATH, SYNC_JOBS_PATH } from '../paths.ts'
import type { Store } from '../store/store.ts'
import {
  findGroup,
  groupRowSchema,
  listGroups,
  listMembers,
  memberRowSchema,
  type PageWanted,
} from './groups.ts'
import { findJob, listJobs, readReport, showJob, type Job } from './job-store.ts'
import type { SyncJobs } from './jobs.ts'
import { reportSchema } from './plan.ts'

const PAGE = {
  limit: wholeNumber(1, 100, 50, 'Rows of the page.'),
  // Databases count rows in 64 bits, JavaScript exactly in 53.
  offset: wholeNumber(0, Number.MAX_SAFE_INTEGER, 0, 'Rows to skip.'),
} as const satisfies ParameterTable

const POLL_AFTER_SECONDS = 2

/** Our ids are lower-case; UUIDs may be in either case (RFC 9562, section 4). */
const idSchema = z.uuid().toLowerCase()

// A new schema each time: the description of a shared one loses its format.
const count = () => z.int().nonnegative()
const time = z.iso.datetime({ precision: 3 })
const jobSchema = z
  .strictObject({
    id: z.uuid(),
    status: z.enum(['queued', 'running', 'succeeded', 'failed']),
    synced_groups: count().nullable().describe('Groups present after the run; set on success.'),
    deleted_groups: count().nullable().describe('Groups deleted by the run; set on success.'),
    error_message: z.string().nullable().describe('One fixed sentence per cause; set on failure.'),
    created_at: time,
    started_at: time.nullable(),
    finished_at: time.nullable(),
  })
  .meta({ id: 'ScimSyncJob' })
const jobReplySchema = z.strictObject({ data: jobSchema }).meta({ id: 'ScimSyncJobReply' })
const jobsSchema = z
  .strictObject({ data: z.array(jobSchema), total_count: count() })
  .meta({ id: 'ScimSyncJobList' })
const reportReplySchema = z.strictObject({ data: reportSchema })
const groupReplySchema = z.strictObject({ data: groupRowSchema })
const groupsSchema = z.strictObject({ data: z.array(groupRowSchema), total_count: count() })
const membersSchema = z.object({
  data: z.array(memberRowSchema),
  total_count: count().nullable().describe('Null if the directory never supplied members of the group.'),
})

const ok = (description: string, schema: z.ZodType, headers: ReplyDescription['headers'] = []) => ({
  '200': { description, headers, content: { 'application/json': schema } },
})
const badPage = { '400': { description: 'Invalid parameters; the message names each.', content: ENVELOPE } }
const unknown = { '404': { description: "Unknown, or another account's.", content: ENVELOPE } }
const idOf = (what: string) => ({ id: z.string().describe(`Identifier of the ${what}.`) })

const START = {
  id: 'startScimSyncJob',
  summary: 'Starts a directory sync, or returns the open one',
  replies: {
    '202': {
      description: 'The job; `Location` is its address for polling.',
      content: { 'application/json': jobReplySchema },
      headers: ['Location', 'Retry-After'],
    },
    '404': { description: 'No directory is configured for the account.', content: ENVELOPE },
  },
} as const
const JOBS = {
  id: 'listScimSyncJobs',
  summary: 'The sync jobs of the account, newest first',
  query: PAGE,
  replies: { ...ok('A page of jobs.', jobsSchema), ...badPage },
}
const JOB = {
  id: 'getScimSyncJob',
  summary: 'Reads a sync job',
  path: idOf('job'),
  replies: { ...ok('The job.', jobReplySchema, ['Retry-After']), ...unknown },
}
const CHANGES = {
  id: 'getScimSyncJobChanges',
  summary: 'What a sync job changed: counts, the first names of each, and warnings',
  path: idOf('job'),
  replies: { ...ok('The changes; none unless the job succeeded.', reportReplySchema), ...unknown },
}
const GROUPS = {
  id: 'listScimGroups',
  summary: 'The synced groups',
  query: PAGE,
  replies: { ...ok('A page of groups.', groupsSchema), ...badPage },
}
const GROUP = {
  id: 'getScimGroup',
  summary: 'Reads a synced group',
  path: idOf('group'),
  replies: { ...ok('The group.', groupReplySchema), ...unknown },
}
const MEMBERS = {
  id: 'listScimGroupMembers',
  summary: 'The members of a synced group',
  path: idOf('group'),
  query: PAGE,
  replies: { ...ok('A page of members.', membersSchema), ...badPage, ...unknown },
}

/** The routes of directory sync; all need a management key. */
export function scimRoutes(store: Store, jobs: SyncJobs): Route[] {
  return [
    // A request body is ignored.
    route('POST', SYNC_JOBS_PATH, START, async (_request, response) => {
      const job = await jobs.request(accountOf(response))
      if (job === undefined) {
        throw new ApiError(404, 'No directory is configured for this account; an operator connects one')
      }
      response.set('Location', `${SYNC_JOBS_PATH}/${job.id}`)
      sendJob(response, 202, job)
    }),
    route('GET', SYNC_JOBS_PATH, JOBS, async (request, response) => {
      sendJson(response, 200, await listJobs(store, accountOf(response), pageOf(request)))
    }),
    route('GET', `${SYNC_JOBS_PATH}/:id`, JOB, async (request, response) => {
      const find = (id: string) => findJob(store, accountOf(response), id)
      sendJob(response, 200, await known('sync job', request, find))
    }),
    route('GET', `${SYNC_JOBS_PATH}/:id/changes`, CHANGES, async (request, response) => {
      const find = (id: string) => readReport(store, accountOf(response), id)
      sendJson(response, 200, { data: await known('sync job', request, find) })
    }),
    route('GET', GROUPS_PATH, GROUPS, async (request, response) => {
      sendJson(response, 200, await listGroups(store, accountOf(response), pageOf(request)))
    }),
    route('GET', `${GROUPS_PATH}/:id`, GROUP, async (request, response) => {
      const find = (id: string) => findGroup(store, accountOf(response), id)
      sendJson(response, 200, { data: await known('group', request, find) })
    }),
    route('GET', `${GROUPS_PATH}/:id/members`, MEMBERS, async (request, response) => {
      const page = pageOf(request)
      const find = (id: string) => listMembers(store, accountOf(response), id, page)
      sendJson(response, 200, await known('group', request, find))
    }),
  ]
}

function route(
  method: Route['method'],
  path: string,
  described: Omit<Operation, 'tag'>,
  handle: Handler,
): Route {
  return { access: 'management', method, path, operation: { tag: 'directory sync', ...described }, handle }
}

function sendJob(response: Reply, status: number, job: Job): void {
  if (job.finished_at === null) response.set('Retry-After', String(POLL_AFTER_SECONDS))
  sendJson(response, status, { data: showJob(job) })
}

function pageOf(request: Request): PageWanted {
  const { limit, offset }: Values<typeof PAGE> = readParameters(PAGE, queryString(request))
  return { limit: limit ?? PAGE.limit.default, offset: offset ?? 0 }
}

function accountOf(response: Reply): string {
  const caller: Caller | undefined = response.locals.caller
  if (caller === undefined) throw new TypeError('The routes of directory sync need an authenticated caller')
  return caller.accountId
}

/** What has the id of the path; an invalid one never reaches the store: PostgreSQL rejects texts with a NUL. */
async function known<Thing>(
  what: string,
  request: Request,
  find: (id: string) => Promise<Thing | undefined>,
): Promise<Thing> {
  const id = idSchema.safeParse(request.params['id']).data
  const thing = id === undefined ? undefined : await find(id)
  if (thing === undefined) throw new ApiError(404, `No such ${what}`)
  return thing
}
