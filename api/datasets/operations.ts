/** The OpenAPI description of the dataset's routes; parameters and rows come from the schemas in use. */
import { z } from 'zod'
import { FLOOR_DATE } from '../../pipeline/contract/calendar.ts'
import {
  modelRowSchema,
  OTHER_MODELS,
  rankingMetaSchema,
  rankingRowSchema,
  seriesRowSchema,
} from '../../pipeline/contract/dataset.ts'
import { MONTHLY_TABLES, SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import { retractionSchema } from '../../pipeline/contract/snapshot-record.ts'
import { errorEnvelopeSchema } from '../http/errors.ts'
import { describeParameters } from '../openapi/describe-parameters.ts'
import type { Operation, ParameterDescription, ReplyDescription, Tag } from '../openapi/operation.ts'
import { MODEL_RANKING_PATH, RANKINGS_PATH, SERIES_PATH, STATUS_PATH } from '../paths.ts'
import { FORMAT_NAMES, FORMATS } from './formats.ts'
import { MODEL_PARAMETERS } from './models.ts'
import { PARAMETERS } from './rankings.ts'
import { DEFAULT_WINDOW_DAYS } from './window.ts'
import { SERIES_PARAMETERS } from './series.ts'
import { snapshotEntrySchema } from './snapshots/catalogue.ts'
import { LIST_PARAMETERS } from './snapshots/list.ts'
import { statusSchema } from './status.ts'

const TAG = 'dataset' satisfies Tag
const ENVELOPE = { 'application/json': errorEnvelopeSchema }

const UNCHANGED: ReplyDescription = {
  description: 'Unchanged since the sent tag.',
  headers: ['ETag', 'Cache-Control', 'Link'],
}

/** Headers of every reply about a file: whole, in part, or unchanged. */
const FILE_HEADERS = ['ETag', 'Last-Modified', 'Cache-Control', 'Repr-Digest', 'Link'] as const

const FILE_TYPES = [
  'application/octet-stream',
  'application/vnd.apache.parquet',
  'text/csv',
  'application/ld+json',
  'text/markdown',
  'text/plain',
] as const

const LATEST_DAY = 'the last completed day of the dataset'

const MEANINGS = {
  category: 'Only apps tagged with a subcategory inside this group.',
  subcategory: 'Only apps with this tag; it must belong to `category` if both are given.',
  sort: '`popular` orders by tokens, `trending` by growth over the three preceding windows.',
  start_date: `First day (UTC), inclusive; clamped to ${FLOOR_DATE}. Default: the window is the ${DEFAULT_WINDOW_DAYS} days that end on \`end_date\`.`,
  end_date: `Last day (UTC), inclusive, from ${FLOOR_DATE} on; clamped to ${LATEST_DAY}. Default: ${LATEST_DAY}.`,
  limit: 'Rows of the page.',
  offset: 'Ranked apps to skip.',
  as_of:
    'Answer from the retained snapshot computed at this time or with this identifier. Default: the current one.',
  format: 'Format of the reply; without it `Accept` decides.',
} as const satisfies Readonly<Record<keyof typeof PARAMETERS, string>>

const FORMS = { as_of: MEANINGS.as_of, format: MEANINGS.format } as const

const SERIES_MEANINGS = {
  app_id: 'The apps by `app_id`; repeat the parameter for each further one.',
  start_date: MEANINGS.start_date,
  end_date: MEANINGS.end_date,
  limit: 'Days of the page.',
  offset: 'Days of the window to skip.',
  ...FORMS,
} as const satisfies Readonly<Record<keyof typeof SERIES_PARAMETERS, string>>

const MODEL_MEANINGS = {
  start_date: MEANINGS.start_date,
  end_date: MEANINGS.end_date,
  ...FORMS,
} as const satisfies Readonly<Record<keyof typeof MODEL_PARAMETERS, string>>

const META = rankingMetaSchema.meta({ id: 'RankingMeta' })
const SNAPSHOT = snapshotEntrySchema.meta({ id: 'Snapshot' })

/** The body of rows by media type; `name` is that of a row. */
function rowsContent(name: string, row: z.ZodType): NonNullable<ReplyDescription['content']> {
  const schema = z
    .strictObject({ data: z.array(row.meta({ id: name })), meta: META })
    .meta({ id: `${name}List` })
  return Object.fromEntries(
    FORMAT_NAMES.map((format) => {
      const { mediaType } = FORMATS[format]
      if (format === 'json') return [mediaType, schema]
      return [mediaType, format === 'csv' ? 'text' : 'binary']
    }),
  )
}

const snapshotId: ParameterDescription = {
  name: 'id',
  in: 'path',
  description: 'Identifier of a snapshot, or `latest`.',
  schema: { type: 'string', examples: ['20261120T020000Z', 'latest'] },
}

const TO_THE_NEWEST: ReplyDescription = {
  description: 'From `latest` to the newest.',
  headers: ['Location', 'Cache-Control'],
}
const RETRACTED: ReplyDescription = {
  description:
    'The snapshot was retracted or pruned; the message has the reason and the nearest retained one.',
  content: ENVELOPE,
}
const NO_SUCH_SNAPSHOT = {
  description: 'There is no such snapshot, or no such file in it.',
  content: ENVELOPE,
}

/** Replies for a file of these types, whole or in byte ranges: for clients every type is bytes. */
function fileReplies(types: readonly string[]) {
  const content = Object.fromEntries(types.map((type) => [type, 'binary' as const]))
  return {
    '200': {
      description: 'The file, which never changes.',
      headers: [...FILE_HEADERS, 'Accept-Ranges'],
      content,
    },
    '206': {
      description: 'The requested range.',
      headers: [...FILE_HEADERS, 'Accept-Ranges', 'Content-Range'],
      content,
    },
    '302': TO_THE_NEWEST,
    '304': { description: 'Unchanged.', headers: FILE_HEADERS },
    '404': NO_SUCH_SNAPSHOT,
    '410': RETRACTED,
    '412': {
      description: 'The file is not what `If-Match` or `If-Unmodified-Since` names.',
      content: ENVELOPE,
    },
    '416': {
      description: 'The range is outside the file.',
      headers: ['Content-Range'],
      content: ENVELOPE,
    },
  } as const
}

/** The replies of an operation that returns rows. */
function rowsReplies(what: string, name: string, row: z.ZodType): Operation['replies'] {
  return {
    '200': {
      description: `${what}; the same rows, and the same columns in the same order, in every format.`,
      headers: [
        'ETag',
        'Last-Modified',
        'Cache-Control',
        'Content-Disposition',
        'Link',
        'Vary',
        'X-Total-Count',
      ],
      content: rowsContent(name, row),
    },
    '304': {
      description: 'Unchanged since the sent tag or time.',
      headers: ['ETag', 'Last-Modified', 'Cache-Control', 'Vary'],
    },
    '400': {
      description: 'Invalid parameters; `error.metadata.parameters` lists each with its allowed values.',
      content: ENVELOPE,
    },
    '406': {
      description: 'None of the types in `Accept` exists; `error.metadata.available` lists the types.',
      content: ENVELOPE,
    },
    '410': {
      description:
        'The snapshot of `as_of` was retracted or pruned; the message has the reason and the nearest retained one.',
      content: ENVELOPE,
    },
    '503': {
      description:
        'No snapshot has been published yet, the published one cannot be opened, or there are too many requests at once.',
      headers: ['Retry-After'],
      content: ENVELOPE,
    },
  }
}

export const DATASET_OPERATIONS = {
  rankings: {
    id: 'getAppRankings',
    tag: TAG,
    summary: 'The top public apps by token usage inside a date window',
    description:
      'Hidden and private apps are excluded; traffic of aliases counts for the canonical app. Ranks stay absolute over pages. An unknown, repeated or empty parameter is an error.',
    parameters: describeParameters(PARAMETERS, MEANINGS),
    examples: [
      { path: `${RANKINGS_PATH}?limit=2&start_date=2026-08-25&end_date=2026-08-31` },
      { path: `${RANKINGS_PATH}?limit=500&colour=red` },
      { path: RANKINGS_PATH, withoutKey: true },
      { path: RANKINGS_PATH, headers: { Accept: 'image/png' } },
    ],
    replies: rowsReplies('The ranking', 'AppRanking', rankingRowSchema),
  },
  series: {
    id: 'getAppSeries',
    tag: TAG,
    summary: 'The usage of up to ten apps by day',
    description:
      'A row for each day and app, also without usage: `coverage` shows whether the day is missing. Longer windows come in pages of days.',
    parameters: describeParameters(SERIES_PARAMETERS, SERIES_MEANINGS),
    examples: [
      { path: `${SERIES_PATH}?app_id=2&start_date=2026-08-30&end_date=2026-08-31` },
      { path: `${SERIES_PATH}?start_date=2026-08-30` },
    ],
    replies: rowsReplies('The series', 'AppDay', seriesRowSchema),
  },
  models: {
    id: 'getRankingsDaily',
    tag: TAG,
    summary: 'The models with the most tokens of each day',
    description: `Per UTC day the 50 public models with the most tokens, as \`author/slug\`, and last a row \`${OTHER_MODELS}\` for all other usage of the public apps. A model's share of a day is its tokens divided by the sum of the day's rows.`,
    parameters: describeParameters(MODEL_PARAMETERS, MODEL_MEANINGS),
    examples: [{ path: `${MODEL_RANKING_PATH}?start_date=2026-08-30&end_date=2026-08-31` }],
    replies: rowsReplies('The models', 'ModelDay', modelRowSchema),
  },
  snapshots: {
    id: 'listSnapshots',
    tag: TAG,
    summary: 'The snapshots, newest first',
    parameters: describeParameters(LIST_PARAMETERS, {
      state:
        'The retained ones, or all that were ever published: records of pruned or retracted ones are permanent.',
      date: 'Only the one in force on this day (UTC), retained or not.',
      limit: 'Snapshots of the page.',
      offset: 'Snapshots to skip.',
    }),
    examples: [{ path: SNAPSHOTS_PATH }],
    replies: {
      '200': {
        description: 'Days, row counts and files of each; its monthly files are at its `url`.',
        headers: ['ETag', 'Cache-Control', 'Link', 'Vary'],
        content: {
          'application/json': z
            .strictObject({
              data: z.array(SNAPSHOT),
              total_count: z.int().nonnegative(),
              retracted: z.array(retractionSchema.meta({ id: 'Retraction' })),
            })
            .meta({ id: 'SnapshotList' }),
        },
      },
      '304': UNCHANGED,
      '400': { description: 'Invalid parameters.', content: ENVELOPE },
    },
  },
  snapshot: {
    id: 'getSnapshot',
    tag: TAG,
    summary: 'One snapshot',
    parameters: [snapshotId],
    examples: [{ path: `${SNAPSHOTS_PATH}/20260901T020000Z` }, { path: `${SNAPSHOTS_PATH}/yesterday` }],
    replies: {
      '200': {
        description: 'Its days, row counts and files.',
        headers: ['ETag', 'Cache-Control', 'Link'],
        content: { 'application/json': z.strictObject({ data: SNAPSHOT }).meta({ id: 'SnapshotReply' }) },
      },
      '302': TO_THE_NEWEST,
      '304': UNCHANGED,
      '404': NO_SUCH_SNAPSHOT,
      '410': RETRACTED,
    },
  },
  file: {
    id: 'getSnapshotFile',
    tag: TAG,
    summary: 'A file of a snapshot, whole or in ranges of bytes',
    parameters: [
      snapshotId,
      {
        name: 'file',
        in: 'path',
        description: 'Name of the file.',
        schema: { type: 'string', examples: ['app-rankings.duckdb', 'rankings.csv'] },
      },
    ],
    examples: [{ path: `${SNAPSHOTS_PATH}/20260901T020000Z/nothing.csv` }],
    replies: fileReplies(FILE_TYPES),
  },
  month: {
    id: 'getSnapshotMonth',
    tag: TAG,
    summary: 'One month of a table by day; while its rows do not change, all snapshots have the same file',
    parameters: [
      snapshotId,
      { name: 'table', in: 'path', description: 'Name of the table.', schema: { enum: MONTHLY_TABLES } },
      {
        name: 'file',
        in: 'path',
        description: 'Name of the file.',
        schema: { type: 'string', examples: ['month=2026-08.parquet'] },
      },
    ],
    replies: fileReplies(['application/vnd.apache.parquet']),
  },
  status: {
    id: 'getStatus',
    tag: TAG,
    summary: 'How fresh the dataset is',
    examples: [{ path: STATUS_PATH }],
    replies: {
      '200': {
        description: 'Times, days missing, next run.',
        content: { 'application/json': statusSchema.meta({ id: 'Status' }) },
      },
    },
  },
} as const satisfies Readonly<Record<string, Operation>>
