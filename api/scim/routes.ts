/** Directory sync over HTTP (CONTRACT 5): starts and shows jobs, and lists the synced groups. */
import { z } from 'zod'
import type { Handler, Reply } from '../http/call.ts'
import type { Route } from '../http/route.ts'
import { ApiError } from '../http/errors.ts'
import { readParameters, wholeNumber, type ParameterTable, type Values } from '../http/query-parameters.ts'
import { queryString, sendJson } from '../http/respond.ts'
import { fault, type Operation, type ReplyDescription } from '../openapi/operation.ts'
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
import { findJob, jobSchema, listJobs, readReport, showJob, type Job } from './job-store.ts'
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

const total = z.int().nonnegative()
const jobReplySchema = z.strictObject({ data: jobSchema }).meta({ id: 'ScimSyncJobReply' })
const jobsSchema = z
  .strictObject({ data: z.array(jobSchema), total_count: total })
  .meta({ id: 'ScimSyncJobList' })
const reportReplySchema = z.strictObject({ data: reportSchema })
const groupReplySchema = z.strictObject({ data: groupRowSchema })
const groupsSchema = z.strictObject({ data: z.array(groupRowSchema), total_count: total })
const membersSchema = z.object({
  data: z.array(memberRowSchema),
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
export function scimRoutes(store: Store, jobs: SyncJobs): Route[] {
  return [
    {
      method: 'POST',
      path: SYNC_JOBS_PATH,
      access: 'management',
      operation: START,
      // A request body is ignored.
      async handle(_request, response) {
        const job = await jobs.request(accountOf(response))
        if (job === undefined)
          throw new ApiError(404, 'No directory is configured for this account; an operator connects one')
        response.set('Location', `${SYNC_JOBS_PATH}/${job.id}`)
        sendJson(response, 202, jobReply(job, response))
      },
    },
    read(
      SYNC_JOBS_PATH,
      { id: 'listScimSyncJobs', summary: 'The sync jobs of the account, newest first', schema: jobsSchema },
      ({ account, page }) => listJobs(store, account, page),
    ),
    read(
      `${SYNC_JOBS_PATH}/:id`,
      { id: 'getScimSyncJob', summary: 'A sync job', schema: jobReplySchema, headers: ['Retry-After'] },
      async ({ account, id, response }) => {
        const job = await findJob(store, account, id)
        return job && jobReply(job, response)
      },
    ),
    read(
      `${SYNC_JOBS_PATH}/:id/changes`,
      {
        id: 'getScimSyncJobChanges',
        summary: 'What a successful sync job changed',
        schema: reportReplySchema,
      },
      ({ account, id }) => dataOf(readReport(store, account, id)),
    ),
    read(
      GROUPS_PATH,
      { id: 'listScimGroups', summary: 'The synced groups', schema: groupsSchema },
      ({ account, page }) => listGroups(store, account, page),
    ),
    read(
      `${GROUPS_PATH}/:id`,
      { id: 'getScimGroup', summary: 'A synced group', schema: groupReplySchema },
      ({ account, id }) => dataOf(findGroup(store, account, id)),
    ),
    read(
      `${GROUPS_PATH}/:id/members`,
      { id: 'listScimGroupMembers', summary: 'The members of a synced group', schema: membersSchema },
      ({ account, id, page }) => listMembers(store, account, id, page),
    ),
  ]
}

/** What a request names. */
interface Wanted {
  readonly account: string
  readonly id: string
  readonly page: PageWanted
  readonly response: Reply
}

/** A GET; `find` resolves to the body, or undefined for a 404. A reply with a total is a page of a list. */
function read(
  path: string,
  {
    schema,
    headers = [],
    ...about
  }: Pick<Operation, 'id' | 'summary'> & Pick<ReplyDescription, 'headers'> & { schema: z.ZodObject },
  find: (wanted: Wanted) => Promise<unknown>,
): Route {
  const isPaged = 'total_count' in schema.shape
  const what = path.includes(':id') && (path.startsWith(GROUPS_PATH) ? 'group' : 'sync job')
  const success = { description: `${about.summary}.`, headers, content: { 'application/json': schema } }
  const operation: Operation = {
    ...about,
    tag: TAG,
    ...(isPaged && { query: PAGE }),
    ...(what && { path: { id: z.string().describe(`Identifier of the ${what}.`) } }),
    replies: {
      '200': success,
      ...(isPaged && { '400': fault('Invalid parameters; the message names each.') }),
      ...(what && { '404': fault("Unknown, or another account's.") }),
    },
  }
  const handle: Handler = async (request, response) => {
    const wanted: Values<typeof PAGE> = isPaged ? readParameters(PAGE, queryString(request)) : {}
    const page = { limit: wanted.limit ?? PAGE.limit.default, offset: wanted.offset ?? 0 }
    // An invalid id never reaches the store: PostgreSQL rejects texts with a NUL.
    const id = what ? idSchema.safeParse(request.params['id']).data : ''
    const account = accountOf(response)
    const found = id === undefined ? undefined : await find({ account, id, page, response })
    if (found === undefined) throw new ApiError(404, `No such ${what}`)
    sendJson(response, 200, found)
  }
  return { method: 'GET', path, access: 'management', operation, handle }
}

function jobReply(job: Job, response: Reply) {
  if (job.finished_at === null) response.set('Retry-After', String(POLL_AFTER_SECONDS))
  return { data: showJob(job) }
}

async function dataOf<Data>(found: Promise<Data | undefined>) {
  const data = await found
  return data && { data }
}

function accountOf(response: Reply): string {
  const { caller } = response.locals
  if (caller === undefined) throw new TypeError('The routes of directory sync need an authenticated caller')
  return caller.accountId
}
