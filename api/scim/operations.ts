/** The OpenAPI description of directory sync (CONTRACT 5). */
import { z } from 'zod'
import { errorEnvelopeSchema } from '../http/errors.ts'
import type { Operation, ParameterDescription, Tag } from '../openapi/operation.ts'
import { GROUPS_PATH, SYNC_JOBS_PATH } from '../paths.ts'
import { groupRowSchema, memberRowSchema } from './groups.ts'
import { reportSchema } from './report.ts'

const TAG = 'directory sync' satisfies Tag
const ENVELOPE = { 'application/json': errorEnvelopeSchema }

const time = z.iso.datetime({ precision: 3 })
const jobSchema = z.strictObject({
  id: z.uuid(),
  status: z.enum(['queued', 'running', 'succeeded', 'failed']),
  synced_groups: z.int().nonnegative().nullable().describe('Groups present after the run; set on success.'),
  deleted_groups: z.int().nonnegative().nullable().describe('Groups deleted by the run; set on success.'),
  error_message: z.string().nullable().describe('One fixed sentence per cause; set on failure.'),
  created_at: time,
  started_at: time.nullable(),
  finished_at: time.nullable(),
})

const namedJob = jobSchema.meta({ id: 'ScimSyncJob' })
const jobReplySchema = z.strictObject({ data: namedJob }).meta({ id: 'ScimSyncJobReply' })
const jobsSchema = z
  .strictObject({ data: z.array(namedJob), total_count: z.int().nonnegative() })
  .meta({ id: 'ScimSyncJobList' })

const changesSchema = z.strictObject({ data: reportSchema })
const groupSchema = z.strictObject({ data: groupRowSchema })
const groupsSchema = z.strictObject({
  data: z.array(groupRowSchema),
  total_count: z.int().nonnegative(),
})

const membersSchema = z.object({
  data: z.array(memberRowSchema),
  total_count: z
    .int()
    .nonnegative()
    .nullable()
    .describe('Null if the directory never supplied members of the group.'),
})

const PAGE: readonly ParameterDescription[] = [
  {
    name: 'limit',
    in: 'query',
    description: 'Rows of the page.',
    schema: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
  },
  {
    name: 'offset',
    in: 'query',
    description: 'Rows to skip.',
    schema: { type: 'integer', minimum: 0, default: 0 },
  },
]

const id = (description: string): ParameterDescription => ({
  name: 'id',
  in: 'path',
  description,
  schema: { type: 'string' },
})

const UNKNOWN = { description: "Unknown, or another account's.", content: ENVELOPE }
const WRONG_PAGE = { description: 'Invalid parameters; the message names each.', content: ENVELOPE }

export const SCIM_OPERATIONS = {
  start: {
    id: 'startScimSyncJob',
    tag: TAG,
    summary: 'Starts a directory sync, or returns the open one',
    examples: [{ path: SYNC_JOBS_PATH }, { path: SYNC_JOBS_PATH, withoutKey: true }],
    replies: {
      '202': {
        description: 'The job; `Location` is its address for polling.',
        headers: ['Location', 'Retry-After'],
        content: { 'application/json': jobReplySchema },
      },
      '404': { description: 'No directory is configured for the account.', content: ENVELOPE },
    },
  },
  jobs: {
    id: 'listScimSyncJobs',
    tag: TAG,
    summary: 'The sync jobs of the account, newest first',
    parameters: PAGE,
    examples: [{ path: SYNC_JOBS_PATH }],
    replies: {
      '200': { description: 'A page of jobs.', content: { 'application/json': jobsSchema } },
      '400': WRONG_PAGE,
    },
  },
  job: {
    id: 'getScimSyncJob',
    tag: TAG,
    summary: 'Reads a sync job',
    parameters: [id('Identifier of the job.')],
    examples: [{ path: `${SYNC_JOBS_PATH}/00000000-0000-4000-8000-000000000000` }],
    replies: {
      '200': {
        description: 'The job.',
        headers: ['Retry-After'],
        content: { 'application/json': jobReplySchema },
      },
      '404': UNKNOWN,
    },
  },
  changes: {
    id: 'getScimSyncJobChanges',
    tag: TAG,
    summary: 'What a sync job changed: counts, the first names of each, and warnings',
    parameters: [id('Identifier of the job.')],
    examples: [{ path: `${SYNC_JOBS_PATH}/00000000-0000-4000-8000-000000000000/changes` }],
    replies: {
      '200': {
        description: 'The changes; none unless the job succeeded.',
        content: { 'application/json': changesSchema },
      },
      '404': UNKNOWN,
    },
  },
  groups: {
    id: 'listScimGroups',
    tag: TAG,
    summary: 'The synced groups',
    parameters: PAGE,
    examples: [
      { path: GROUPS_PATH },
      { path: `${GROUPS_PATH}?limit=0` },
      { path: GROUPS_PATH, withoutKey: true },
    ],
    replies: {
      '200': { description: 'A page of groups.', content: { 'application/json': groupsSchema } },
      '400': WRONG_PAGE,
    },
  },
  group: {
    id: 'getScimGroup',
    tag: TAG,
    summary: 'Reads a synced group',
    parameters: [id('Identifier of the group.')],
    examples: [{ path: `${GROUPS_PATH}/00000000-0000-4000-8000-000000000000` }],
    replies: {
      '200': { description: 'The group.', content: { 'application/json': groupSchema } },
      '404': UNKNOWN,
    },
  },
  members: {
    id: 'listScimGroupMembers',
    tag: TAG,
    summary: 'The members of a synced group',
    parameters: [id('Identifier of the group.'), ...PAGE],
    examples: [{ path: `${GROUPS_PATH}/00000000-0000-4000-8000-000000000000/members` }],
    replies: {
      '200': { description: 'A page of members.', content: { 'application/json': membersSchema } },
      '400': WRONG_PAGE,
      '404': UNKNOWN,
    },
  },
} as const satisfies Readonly<Record<string, Operation>>
