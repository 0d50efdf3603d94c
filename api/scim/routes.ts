/** Directory sync over HTTP (CONTRACT 5): starts and shows jobs, and lists the synced groups. */
import { z } from 'zod'
import { queryString, sendJson, type Handler, type Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import { readParameters, wholeNumber, type ParameterTable, type Values } from '../http/query-parameters.ts'
import type { Route } from '../http/route.ts'
import { fault, type Operation } from '../openapi/operation.ts'
import { GROUPS_PATH, SYNC_JOBS_PATH } from '../paths.ts'
import type { Queries } from '../store/store.ts'
import { findGroup, groupRowSchema, listGroups, listMembers } from './groups.ts'
import { findJob, jobSchema, listJobs, readReport, showJob, type Job, type PageWanted } from './job-store.ts'
import type { SyncJobs } from './jobs.ts'
import { memberSchema } from './messages.ts'
import { reportSchema } from './plan.ts'

const PAGE = {
  limit: wholeNumber(1, 100, 50, 'Rows of the page.'),
  // Databases count rows in 64 bits, JavaScript exactly in 53.
  offset: wholeNumber(0, Number.MAX_SAFE_INTEGER, 0, 'Rows to skip.'),
} as const satisfies ParameterTable

const POLL_AFTER_SECONDS = 2

/** Our ids are lower-case; UUIDs may be in either case (RFC 9562, section 4). */
const idSchema = z.uuid().toLowerCase()

const total = z.int().nonnegative()
const one = <Data extends z.ZodType>(data: Data) => z.strictObject({ data })
const list = <Row extends z.ZodType>(row: Row) => z.strictObject({ data: z.array(row), total_count: total })
const jobReplySchema = one(jobSchema).meta({ id: 'ScimSyncJobReply' })
const jobsSchema = list(jobSchema).meta({ id: 'ScimSyncJobList' })
const membersSchema = list(memberSchema).extend({
  total_count: total.nullable().describe('Null if the directory never supplied members of the group.'),
})

const TAG = 'directory sync'
const START: Operation = {
  id: 'startScimSyncJob',
  tag: TAG,
  summary: 'Starts a directory sync, or returns the open one',
  replies: {
    '202': {
      description: 'The job; `Location` is its address for polling.',
      content: { 'application/json': jobReplySchema },
      headers: ['Location', 'Retry-After'],
    },
    '404': fault('No directory is configured for the account.'),
  },
}

/** The routes of directory sync; all need a management key. */
export function scimRoutes(store: Queries, jobs: SyncJobs): Route[] {
  return [
    {
      method: 'POST',
      path: SYNC_JOBS_PATH,
      access: 'management',
      operation: START,
      // A request body is ignored.
      async handle(_request, reply) {
        const job = await jobs.request(accountOf(reply))
        if (job === undefined)
          throw new ApiError(404, 'No directory is configured for this account; an operator connects one')
        reply.set('Location', `${SYNC_JOBS_PATH}/${job.id}`)
        sendJson(reply, 202, { data: pollable(job, reply) })
      },
    },
    read(
      SYNC_JOBS_PATH,
      ['listScimSyncJobs', 'The sync jobs of the account, newest first', jobsSchema],
      ({ account, page }) => listJobs(store, account, page),
    ),
    read(
      `${SYNC_JOBS_PATH}/:id`,
      ['getScimSyncJob', 'A sync job', jobReplySchema],
      async ({ account, id, reply }) => pollable(await findJob(store, account, id), reply),
    ),
    read(
      `${SYNC_JOBS_PATH}/:id/changes`,
      ['getScimSyncJobChanges', 'What a successful sync job changed', one(reportSchema)],
      ({ account, id }) => readReport(store, account, id),
    ),
    read(GROUPS_PATH, ['listScimGroups', 'The synced groups', list(groupRowSchema)], ({ account, page }) =>
      listGroups(store, account, page),
    ),
    read(`${GROUPS_PATH}/:id`, ['getScimGroup', 'A synced group', one(groupRowSchema)], ({ account, id }) =>
      findGroup(store, account, id),
    ),
    read(
      `${GROUPS_PATH}/:id/members`,
      ['listScimGroupMembers', 'The members of a synced group', membersSchema],
      ({ account, id, page }) => listMembers(store, account, id, page),
    ),
  ]
}

/** A GET of a page of a list, which has a total, or of the data with the id in the path; undefined is a 404. */
function read(
  path: string,
  [id, summary, schema]: readonly [id: string, summary: string, schema: z.ZodObject],
  find: (wanted: { account: string; id: string; page: PageWanted; reply: Reply }) => Promise<unknown>,
): Route {
  const isPaged = 'total_count' in schema.shape
  const what = path.startsWith(GROUPS_PATH) ? 'group' : 'sync job'
  const hasId = path.includes(':id')
  const headers = schema === jobReplySchema ? (['Retry-After'] as const) : []
  const operation: Operation = {
    id,
    tag: TAG,
    summary,
    ...(isPaged && { query: PAGE }),
    ...(hasId && { path: { id: z.string().describe(`Identifier of the ${what}.`) } }),
    replies: {
      '200': { description: `${summary}.`, headers, content: { 'application/json': schema } },
      ...(isPaged && { '400': fault('Invalid parameters; the message names each.') }),
      ...(hasId && { '404': fault("Unknown, or another account's.") }),
    },
  }
  const handle: Handler = async (request, reply) => {
    const wanted: Values<typeof PAGE> = isPaged ? readParameters(PAGE, queryString(request)) : {}
    const page = { limit: wanted.limit ?? PAGE.limit.default, offset: wanted.offset ?? 0 }
    // An invalid id never reaches the store: PostgreSQL rejects texts with a NUL.
    const known = hasId ? idSchema.safeParse(request.params['id']).data : ''
    const account = accountOf(reply)
    const found = known === undefined ? undefined : await find({ account, id: known, page, reply })
    if (found === undefined) throw new ApiError(404, `No such ${what}`)
    sendJson(reply, 200, isPaged ? found : { data: found })
  }
  return { method: 'GET', path, access: 'management', operation, handle }
}

/** A job to show; an open one with the time to poll again. */
function pollable(job: Job | undefined, reply: Reply) {
  if (job?.finished_at === null) reply.set('Retry-After', String(POLL_AFTER_SECONDS))
  return job && showJob(job)
}

function accountOf(reply: Reply): string {
  const { caller } = reply.locals
  if (caller === undefined) throw new TypeError('The routes of directory sync need an authenticated caller')
  return caller.account_id
}
