/** The routes of the dataset (CONTRACT 4), each with its description for the OpenAPI document. */
import { z } from 'zod'
import {
  modelRowSchema,
  OTHER_MODELS,
  rankingMetaSchema,
  rankingRowSchema,
  seriesRowSchema,
} from '../../pipeline/contract/dataset.ts'
import { MONTHLY_TABLES, SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import { retractionSchema } from '../../pipeline/contract/snapshot-record.ts'
import type { Clock, Handler } from '../http/call.ts'
import type { Route } from '../http/route.ts'
import { BINARY, fault, type Operation, type ReplyDescription } from '../openapi/operation.ts'
import { STATUS_PATH } from '../paths.ts'
import type { CronSchedule } from '../process/cron-schedule.ts'
import { FORMATS, MEDIA_TYPES } from './formats.ts'
import { RANKINGS } from './rankings.ts'
import {
  createBodies,
  replyRows,
  type ReplyDependencies,
  type RowsOperation,
  type RowsQuery,
} from './reply.ts'
import { MODELS, SERIES } from './series.ts'
import { snapshotEntrySchema } from './snapshots/catalogue.ts'
import type { Snapshots } from './snapshots/current.ts'
import { LIST_PARAMETERS, listSnapshots, showSnapshot, snapshotFile } from './snapshots/files.ts'
import { datasetStatus, statusSchema } from './status.ts'

type DatasetDependencies = Omit<ReplyDependencies, 'bodies'> & {
  readonly clock: Clock
  readonly schedule: CronSchedule
}

type Description = Omit<Operation, 'tag'>

export function datasetRoutes({ clock, schedule, ...dependencies }: DatasetDependencies): readonly Route[] {
  const { snapshots } = dependencies
  return [
    ...rowsRoutes({ ...dependencies, bodies: createBodies() }),
    ...snapshotRoutes(snapshots),
    get(STATUS_PATH, datasetStatus(snapshots, schedule, clock), {
      id: 'getStatus',
      summary: 'How fresh the dataset is',
      replies: { '200': { description: 'Times, days missing, next run.', content: json(STATUS) } },
    }),
  ]
}

function rowsRoutes(dependencies: ReplyDependencies): readonly Route[] {
  /** A route of rows: it needs a key of any kind, and all share the key's limits. */
  const rows = <Query extends RowsQuery>(
    operation: RowsOperation<Query>,
    description: Description,
  ): Route => {
    const handle = replyRows(dependencies, operation)
    const route = get(operation.path, handle, { ...description, query: operation.parameters })
    return { ...route, access: 'any', limited: true }
  }
  return [
    rows(RANKINGS, {
      id: 'getAppRankings',
      summary: 'The top public apps by token usage inside a date window',
      description:
        'Hidden and private apps are excluded; traffic of aliases counts for the canonical app. Ranks stay absolute over pages. An unknown, repeated or empty parameter is an error.',
      replies: rowsReplies('AppRanking', rankingRowSchema),
    }),
    rows(SERIES, {
      id: 'getAppSeries',
      summary: 'The usage of up to ten apps by day',
      description:
        'A row for each day and app, also without usage: `coverage` shows whether the day is missing. Longer windows come in pages of days.',
      replies: rowsReplies('AppDay', seriesRowSchema),
    }),
    rows(MODELS, {
      id: 'getRankingsDaily',
      summary: 'The models with the most tokens of each day',
      description: `Per UTC day the 50 public models with the most tokens, as \`author/slug\`, and last a row \`${OTHER_MODELS}\` for all other usage of the public apps. A model's share of a day is its tokens divided by the sum of the day's rows.`,
      replies: rowsReplies('ModelDay', modelRowSchema),
    }),
  ]
}

function snapshotRoutes(snapshots: Snapshots): readonly Route[] {
  const file = snapshotFile(snapshots)
  return [
    get(SNAPSHOTS_PATH, listSnapshots(snapshots), {
      id: 'listSnapshots',
      summary: 'The snapshots, newest first',
      query: LIST_PARAMETERS,
      replies: openReplies('Days, row counts and files of each; its monthly files are at its `url`.', LIST, [
        '400',
      ]),
    }),
    get(`${SNAPSHOTS_PATH}/:id`, showSnapshot(snapshots), {
      id: 'getSnapshot',
      summary: 'One snapshot',
      path: { id },
      replies: openReplies('Its days, row counts and files.', ONE_SNAPSHOT, OF_SNAPSHOT),
    }),
    get(`${SNAPSHOTS_PATH}/:id/:file`, file, {
      id: 'getSnapshotFile',
      summary: 'A file of a snapshot, whole or in ranges of bytes',
      path: { id, file: fileName('app-rankings.duckdb', 'rankings.csv') },
      replies: fileReplies('application/octet-stream', FORMATS.parquet.contentType, ...TEXTS),
    }),
    get(`${SNAPSHOTS_PATH}/:id/:table/:file`, file, {
      id: 'getSnapshotMonth',
      summary: 'One month of a table by day; while its rows do not change, all snapshots have the same file',
      path: {
        id,
        table: z.enum(MONTHLY_TABLES).describe('Name of the table.'),
        file: fileName('month=2026-08.parquet'),
      },
      replies: fileReplies(FORMATS.parquet.contentType),
    }),
  ]
}

/** A GET that needs no key. */
function get(path: string, handle: Handler, operation: Description): Route {
  return { method: 'GET', access: 'open', path, handle, operation: { tag: 'dataset', ...operation } }
}

const json = (schema: z.ZodType) => ({ 'application/json': schema })
const id = z
  .string()
  .meta({ description: 'Identifier of a snapshot, or `latest`.', examples: ['20261120T020000Z', 'latest'] })
const fileName = (...examples: string[]) => z.string().meta({ description: 'Name of the file.', examples })
const TEXTS = ['text/csv', 'application/ld+json', 'text/markdown', 'text/plain']

const META = rankingMetaSchema.meta({ id: 'RankingMeta' })
const STATUS = statusSchema.meta({ id: 'Status' })
const SNAPSHOT = snapshotEntrySchema.meta({ id: 'Snapshot' })
const ONE_SNAPSHOT = z.strictObject({ data: SNAPSHOT }).meta({ id: 'SnapshotReply' })
const LIST = z
  .strictObject({
    data: z.array(SNAPSHOT),
    total_count: z.int().nonnegative(),
    retracted: z.array(retractionSchema.meta({ id: 'Retraction' })),
  })
  .meta({ id: 'SnapshotList' })

/** What these operations answer beside their content. */
const OTHERS = {
  '302': { description: 'From `latest` to the newest.', headers: ['Location'] },
  '400': fault('Invalid parameters; `error.metadata.parameters` lists each with its allowed values.'),
  '404': fault('There is no such snapshot, or no such file in it.'),
  '406': fault('None of the types in `Accept` exists; `error.metadata.available` lists the types.'),
  '410': fault(
    'The snapshot was retracted or pruned; the message has the reason and the nearest retained one.',
  ),
  '412': fault('The file is not what `If-Match` or `If-Unmodified-Since` names.'),
  '416': fault('The range is outside the file.', ['Content-Range']),
  '503': fault('No snapshot is published or can be opened, or too many requests wait.', ['Retry-After']),
} as const satisfies Operation['replies']
type Other = keyof typeof OTHERS

const OF_SNAPSHOT = ['302', '404', '410', '503'] as const satisfies readonly Other[]

/** The content, a 304, which names no pages, and others. */
function repliesWith(content: ReplyDescription, others: readonly Other[]): Operation['replies'] {
  return {
    '200': content,
    '304': { description: 'Unchanged since the sent tag or time.', headers: ['ETag'] },
    ...Object.fromEntries(others.map((status) => [status, OTHERS[status]])),
  }
}

/** The replies of an operation that returns rows; `name` is that of a row. */
function rowsReplies(name: string, row: z.ZodObject): Operation['replies'] {
  const body = z.strictObject({ data: z.array(row.meta({ id: name })), meta: META })
  const files = MEDIA_TYPES.map((type) => [type, BINARY])
  const content: ReplyDescription = {
    description: 'The rows, the same ones with the same columns in the same order in every format.',
    headers: ['ETag', 'Link', 'X-Total-Count'],
    content: { ...Object.fromEntries(files), ...json(body.meta({ id: `${name}List` })) },
  }
  return repliesWith(content, ['400', '406', '410', '503'])
}

/** The replies of an operation that describes snapshots, which the next run may change. */
function openReplies(description: string, schema: z.ZodType, others: readonly Other[]): Operation['replies'] {
  return repliesWith({ description, headers: ['ETag', 'Link'], content: json(schema) }, others)
}

/** Replies for a file of these types, whole or in byte ranges: for clients every type is bytes. */
function fileReplies(...types: readonly string[]): Operation['replies'] {
  const content = Object.fromEntries(types.map((type) => [type, BINARY]))
  const headers = ['ETag', 'Link', 'Repr-Digest'] as const
  const whole = { description: 'The file, which never changes.', headers, content }
  return {
    ...repliesWith(whole, [...OF_SNAPSHOT, '412', '416']),
    '206': { ...whole, description: 'The requested range.', headers: [...headers, 'Content-Range'] },
  }
}
