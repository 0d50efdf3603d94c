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
import { BINARY, fault, type Operation } from '../openapi/operation.ts'
import { STATUS_PATH } from '../paths.ts'
import type { CronSchedule } from '../process/cron-schedule.ts'
import { FORMATS } from './formats.ts'
import { RANKINGS } from './rankings.ts'
import { replyRows, type ReplyDependencies, type RowsOperation } from './reply.ts'
import { MODELS, SERIES } from './series.ts'
import { snapshotEntrySchema } from './snapshots/catalogue.ts'
import type { Snapshots } from './snapshots/current.ts'
import { LIST_PARAMETERS, listSnapshots, showSnapshot, snapshotFile } from './snapshots/files.ts'
import { datasetStatus, statusSchema } from './status.ts'

interface DatasetDependencies extends ReplyDependencies {
  readonly clock: Clock
  readonly schedule: CronSchedule
}

export function datasetRoutes({ clock, schedule, ...dependencies }: DatasetDependencies): readonly Route[] {
  const { snapshots } = dependencies
  return [
    ...rowsRoutes(dependencies),
    ...snapshotRoutes(snapshots),
    openRoute(STATUS_PATH, datasetStatus(snapshots, schedule, clock), {
      id: 'getStatus',
      summary: 'How fresh the dataset is',
      replies: { '200': { description: 'Times, days missing, next run.', content: json(STATUS) } },
    }),
  ]
}

function rowsRoutes(dependencies: ReplyDependencies): readonly Route[] {
  return [
    rowsRoute(dependencies, RANKINGS, {
      id: 'getAppRankings',
      summary: 'The top public apps by token usage inside a date window',
      description:
        'Hidden and private apps are excluded; traffic of aliases counts for the canonical app. Ranks stay absolute over pages. An unknown, repeated or empty parameter is an error.',
      replies: rowsReplies('AppRanking', rankingRowSchema, {
        app_id: 123,
        app_name: 'Example',
        rank: 1,
        total_requests: 456,
        total_tokens: '789',
      }),
    }),
    rowsRoute(dependencies, SERIES, {
      id: 'getAppSeries',
      summary: 'The usage of up to ten apps by day',
      description:
        'A row for each day and app, also without usage: `coverage` shows whether the day is missing. Longer windows come in pages of days.',
      replies: rowsReplies('AppDay', seriesRowSchema, {
        day: '2026-11-19',
        app_id: 123,
        app_name: 'Example',
        requests: 4,
        prompt_tokens: '50',
        completion_tokens: '6',
        total_tokens: '56',
        coverage: 'complete',
      }),
    }),
    rowsRoute(dependencies, MODELS, {
      id: 'getRankingsDaily',
      summary: 'The models with the most tokens of each day',
      description: `Per UTC day the 50 public models with the most tokens, as \`author/slug\`, and last a row \`${OTHER_MODELS}\` for all other usage of the public apps. A model's share of a day is its tokens divided by the sum of the day's rows.`,
      replies: rowsReplies('ModelDay', modelRowSchema, {
        date: '2026-11-19',
        model_permaslug: 'acme/large',
        total_tokens: '789',
      }),
    }),
  ]
}

function snapshotRoutes(snapshots: Snapshots): readonly Route[] {
  const file = snapshotFile(snapshots)
  return [
    openRoute(SNAPSHOTS_PATH, listSnapshots(snapshots), {
      id: 'listSnapshots',
      summary: 'The snapshots, newest first',
      query: LIST_PARAMETERS,
      replies: {
        '200': {
          description: 'Days, row counts and files of each; its monthly files are at its `url`.',
          headers: ['ETag', 'Cache-Control', 'Link', 'Vary'],
          content: json(LIST),
        },
        '400': INVALID,
        ...UNCHANGED,
      },
    }),
    openRoute(`${SNAPSHOTS_PATH}/:id`, showSnapshot(snapshots), {
      id: 'getSnapshot',
      summary: 'One snapshot',
      path: { id },
      replies: {
        '200': {
          description: 'Its days, row counts and files.',
          headers: ['ETag', 'Cache-Control', 'Link'],
          content: json(z.strictObject({ data: SNAPSHOT }).meta({ id: 'SnapshotReply' })),
        },
        ...UNCHANGED,
        ...OF_SNAPSHOT,
      },
    }),
    openRoute(`${SNAPSHOTS_PATH}/:id/:file`, file, {
      id: 'getSnapshotFile',
      summary: 'A file of a snapshot, whole or in ranges of bytes',
      path: { id, file: fileName('app-rankings.duckdb', 'rankings.csv') },
      replies: fileReplies('application/octet-stream', FORMATS.parquet.mediaType, ...TEXTS),
    }),
    openRoute(`${SNAPSHOTS_PATH}/:id/:table/:file`, file, {
      id: 'getSnapshotMonth',
      summary: 'One month of a table by day; while its rows do not change, all snapshots have the same file',
      path: {
        id,
        table: z.enum(MONTHLY_TABLES).describe('Name of the table.'),
        file: fileName('month=2026-08.parquet'),
      },
      replies: fileReplies(FORMATS.parquet.mediaType),
    }),
  ]
}

function openRoute(path: string, handle: Handler, operation: Omit<Operation, 'tag'>): Route {
  return { method: 'GET', access: 'open', path, handle, operation: { tag: 'dataset', ...operation } }
}

/** A route of rows: it needs a key of any kind, and all share the key's limits. */
function rowsRoute(
  dependencies: ReplyDependencies,
  rows: RowsOperation,
  described: Omit<Operation, 'tag'>,
): Route {
  const open = openRoute(rows.path, replyRows(dependencies, rows), { ...described, query: rows.parameters })
  return { ...open, access: 'any', limited: true }
}

const META = rankingMetaSchema.meta({ id: 'RankingMeta' })
const EXAMPLE_META = {
  as_of: '2026-11-20T02:00:00Z',
  start_date: '2026-10-21',
  end_date: '2026-11-19',
  version: 'v1',
}

const INVALID = fault('Invalid parameters; `error.metadata.parameters` lists each with its allowed values.')
const GONE = fault(
  'The snapshot was retracted or pruned; the message has the reason and the nearest retained one.',
)
const NONE_YET = 'No snapshot has been published yet, or the published one cannot be opened.'

/** The replies of an operation that returns rows; `name` is that of a row. */
function rowsReplies(name: string, row: z.ZodType, example: object): Operation['replies'] {
  const body = z.strictObject({ data: z.array(row.meta({ id: name })), meta: META })
  const cached = ['ETag', 'Last-Modified', 'Cache-Control', 'Vary'] as const
  return {
    '200': {
      description: 'The rows, the same ones with the same columns in the same order in every format.',
      headers: [...cached, 'Content-Disposition', 'Link', 'X-Total-Count'],
      content: {
        [FORMATS.json.mediaType]: body.meta({ id: `${name}List` }),
        [FORMATS.csv.mediaType]: z.string(),
        [FORMATS.parquet.mediaType]: BINARY,
        [FORMATS.arrow.mediaType]: BINARY,
      },
      example: { data: [example], meta: EXAMPLE_META },
    },
    '304': { description: 'Unchanged since the sent tag or time.', headers: cached },
    '400': INVALID,
    '406': fault('None of the types in `Accept` exists; `error.metadata.available` lists the types.'),
    '410': GONE,
    '503': fault(`${NONE_YET} Also while there are too many requests at once.`, ['Retry-After']),
  }
}

const SNAPSHOT = snapshotEntrySchema.meta({ id: 'Snapshot' })
const LIST = z
  .strictObject({
    data: z.array(SNAPSHOT),
    total_count: z.int().nonnegative(),
    retracted: z.array(retractionSchema.meta({ id: 'Retraction' })),
  })
  .meta({ id: 'SnapshotList' })
const STATUS = statusSchema.meta({ id: 'Status' })

/** What addresses below one snapshot answer beside its content. */
const OF_SNAPSHOT: Operation['replies'] = {
  '302': { description: 'From `latest` to the newest.', headers: ['Location', 'Cache-Control'] },
  '404': fault('There is no such snapshot, or no such file in it.'),
  '410': GONE,
  '503': fault(NONE_YET, ['Retry-After']),
}
const UNCHANGED: Operation['replies'] = {
  '304': { description: 'Unchanged since the sent tag.', headers: ['ETag', 'Cache-Control', 'Link'] },
}

const json = (schema: z.ZodType) => ({ 'application/json': schema })
const id = z
  .string()
  .meta({ description: 'Identifier of a snapshot, or `latest`.', examples: ['20261120T020000Z', 'latest'] })
const fileName = (...examples: string[]) => z.string().meta({ description: 'Name of the file.', examples })
const TEXTS = ['text/csv', 'application/ld+json', 'text/markdown', 'text/plain']

/** Replies for a file of these types, whole or in byte ranges: for clients every type is bytes. */
function fileReplies(...types: readonly string[]): Operation['replies'] {
  const headers = ['ETag', 'Last-Modified', 'Cache-Control', 'Repr-Digest', 'Link'] as const
  const content = Object.fromEntries(types.map((type) => [type, BINARY]))
  const range = [...headers, 'Accept-Ranges', 'Content-Range'] as const
  return {
    '200': { description: 'The file, which never changes.', headers: [...headers, 'Accept-Ranges'], content },
    '206': { description: 'The requested range.', headers: range, content },
    '304': { description: 'Unchanged.', headers },
    '412': fault('The file is not what `If-Match` or `If-Unmodified-Since` names.'),
    '416': fault('The range is outside the file.', ['Content-Range']),
    ...OF_SNAPSHOT,
  }
}
