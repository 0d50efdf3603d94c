/** Answers requests for rows of the dataset (CONTRACT 4): limits, 304, HEAD, formats, `as_of`, links, cache. */
import { createHash } from 'node:crypto'
import type { Request } from 'express'
import { z } from 'zod'
import { asOfFromId } from '../../pipeline/contract/calendar.ts'
import { DATASET_VERSION, LICENCE, type Columns } from '../../pipeline/contract/dataset.ts'
import { CROISSANT_FILE, SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import type { ApplyLimits } from '../accounts/rate-limiter.ts'
import { queryString, sendBody, type Handler, type Headers } from '../http/call.ts'
import {
  createBodyCache,
  encodedTag,
  type Encoding,
  encodingHeader,
  preferredEncoding,
} from '../http/encodings.ts'
import { ApiError } from '../http/errors.ts'
import { isNotModified } from '../http/headers.ts'
import {
  oneOf,
  readParameters,
  type Given,
  type ParameterTable,
  type Values,
} from '../http/query-parameters.ts'
import { DATASETS_PATH } from '../paths.ts'
import { chooseFormat, FORMAT_NAMES, FORMATS, type Format, type Table } from './formats.ts'
import { linkField, pagesAround } from './links.ts'
import type { Snapshots } from './snapshots/current.ts'
import type { Snapshot, SnapshotFacts } from './snapshots/facts.ts'
import { LATEST_PATH } from './snapshots/files.ts'
import type { DateWindow } from './window.ts'

const isTime = (text: string) => z.iso.datetime({ offset: true }).safeParse(text).success

/** The parameters of every operation that returns rows. */
export const REPLY_PARAMETERS = {
  as_of: {
    // One text for generated clients, not one of two.
    schema: z
      .string()
      .refine((text) => isTime(text) || asOfFromId(text) !== undefined)
      .describe(
        'Answer from the retained snapshot computed at this time or with this identifier. Default: the current one.',
      ),
    allowed:
      'the time of a snapshot, such as 2026-11-20T02:00:00Z, or its identifier, such as 20261120T020000Z',
  },
  format: oneOf(FORMAT_NAMES, 'Format of the reply; without it `Accept` decides.'),
} as const satisfies ParameterTable

/** Every parameter of requested rows written out, except snapshot and format; null for a filter that is not set. */
export type RowsQuery = DateWindow & Readonly<Record<string, string | number | null>>

/** An operation that returns rows. */
export type RowsOperation<Query extends RowsQuery> = {
  readonly path: string
  readonly parameters: ParameterTable
  readonly columns: Columns
  /** The largest allowed offset, if it is less than the total. */
  readonly maxOffset?: number
  /**
   * Applies defaults and clamps: equal requests have equal queries.
   * @throws ApiError 400 for parameters that are valid alone, but not together or not with this snapshot.
   */
  readonly resolve: (given: Given, snapshot: SnapshotFacts) => Query
  /**
   * Reads the rows, and their total over all pages in the unit of limit and offset, if there are pages.
   * @throws ApiError 400 if the snapshot lacks the requested apps.
   */
  readonly read: (
    snapshot: Snapshot,
    query: Query,
  ) => Promise<{ readonly rows: Table['rows']; readonly total?: number }>
}

/** The bytes of a reply, and the headers that depend on its rows. */
type Made = { readonly body: Buffer; readonly headers: Headers }

/** Bytes of all cached bodies together. */
const CACHE_BYTES = 64 * 1024 * 1024

/** The cached bodies of this process: each is made once for concurrent requests, while its snapshot is open. */
export const createBodies = () => createBodyCache<Made>(CACHE_BYTES)

export type ReplyDependencies = {
  readonly snapshots: Snapshots
  readonly bodies: ReturnType<typeof createBodies>
  readonly applyLimits: ApplyLimits
}

/** Answers from the current snapshot, or from the one in `as_of`, and applies the limits to each request. */
export function replyRows<Query extends RowsQuery>(
  { snapshots, bodies, applyLimits }: ReplyDependencies,
  operation: RowsOperation<Query>,
): Handler {
  /** Finds what is requested, of a snapshot that `held` keeps open. */
  async function find(request: Request, held: DisposableStack) {
    const given = readParameters(operation.parameters, queryString(request))
    const { as_of, format: named }: Values<typeof REPLY_PARAMETERS> = given
    const snapshot = held.use(await snapshots.take(as_of, 'clients'))
    const query = operation.resolve(given, snapshot)
    const form = { format: chooseFormat(request, named), encoding: preferredEncoding(request) }
    return represent(operation, query, snapshot, form)
  }

  return async (request, reply) => {
    using held = new DisposableStack()
    const [found] = await Promise.allSettled([find(request, held)])
    const isRefused = found.status === 'rejected'
    const isHead = request.method === 'HEAD'
    const isUnchanged = !isRefused && isNotModified(request.headers, found.value)
    const isUnavailable = isRefused && found.reason instanceof ApiError && found.reason.status === 503
    // A 304, a HEAD and a request before the first snapshot do not count (CONTRACT 4.5). A 503 from overload does: it
    // is counted before the query, and before the reply: a used-up limit takes precedence over invalid parameters (4.1).
    await applyLimits(reply, isHead || isUnchanged || isUnavailable ? 'free' : 'counted')
    if (isRefused) throw found.reason
    const { name, encoding, headers, contentType, linksTo, make } = found.value
    reply.set(headers)
    if (isUnchanged) return void reply.status(304).end()
    // A HEAD is free, so it must not cost a query: it has no Content-Length, and no links to pages.
    if (isHead) return void reply.set({ 'Content-Type': contentType, Link: linksTo(0) }).end()
    const made = await bodies(name, encoding, make)
    sendBody(reply.set(made.headers), 200, contentType, made.body)
  }
}

/** Characters of the longest values that a name has as they are: a list of many apps is longer, and has a hash of 128 bits. */
const LONGEST_VALUES = 80
const HASH_CHARACTERS = 22

/** What a request gets: all that is known before the count and the query, and how the rest is made. */
function represent<Query extends RowsQuery>(
  { path, columns, maxOffset = Infinity, read }: RowsOperation<Query>,
  query: Query,
  snapshot: Snapshot,
  { format, encoding }: { readonly format: Format; readonly encoding: Encoding },
) {
  const parameters = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== null))
  const { contentType, encode } = FORMATS[format]
  const dataset = path.slice(DATASETS_PATH.length + 1).replaceAll('/', '-')
  const values = Object.values(parameters).join('.').replaceAll(',', '-')
  const hash = () => createHash('sha256').update(values).digest('base64url').slice(0, HASH_CHARACTERS)
  const short = values.length > LONGEST_VALUES ? hash() : values
  // A descriptive file name, unique over operations, parameters, snapshots and formats.
  const name = [dataset, short, snapshot.id, format].join('.')
  const etag = encodedTag(name, encoding)
  const lastModified = new Date(snapshot.as_of)

  /** Page links pin the snapshot, so that a swap between two pages loses and repeats nothing; `total` is over all pages. */
  function linksTo(total: number): string {
    const folder = `${SNAPSHOTS_PATH}/${snapshot.id}`
    const given = { as_of: snapshot.id, ...parameters, ...(format !== 'json' && { format }) }
    return linkField({
      ...pagesAround(path, given, Math.min(total, maxOffset + 1)),
      license: LICENCE.url,
      describedby: `${folder}/${CROISSANT_FILE}`,
      'cite-as': folder,
      'latest-version': LATEST_PATH,
    })
  }

  async function make(): Promise<Made> {
    const { rows, total } = await read(snapshot, query)
    const meta = metaOf(snapshot, query)
    const licence = { license: LICENCE.name, license_url: LICENCE.url, attribution: snapshot.attribution }
    const metadata = { ...meta, ...parameters, ...licence }
    const count = total === undefined ? {} : { 'X-Total-Count': String(total) }
    const body = await encode({ columns, rows, meta, metadata })
    return { body, headers: { Link: linksTo(total ?? 0), ...count } }
  }

  const headers: Headers = {
    ETag: etag,
    'Last-Modified': lastModified.toUTCString(),
    'Cache-Control': CACHE_CONTROL,
    Vary: 'Accept, Accept-Encoding, Authorization',
    ...encodingHeader(encoding),
    ...(format !== 'json' && { 'Content-Disposition': `attachment; filename="${name}"` }),
  }
  return { name, encoding, etag, lastModified, headers, contentType, linksTo, make }
}

// A pinned reply never changes, but its snapshot may be retracted: caches must revalidate.
const CACHE_CONTROL = 'private, max-age=300, must-revalidate'

/** The description of rows in every reply (CONTRACT 4.3). */
export function metaOf({ as_of }: SnapshotFacts, { start_date, end_date }: DateWindow) {
  return { as_of, start_date, end_date, version: DATASET_VERSION }
}
