/** Answers requests for rows of the dataset (CONTRACT 4): limits, 304, HEAD, formats, `as_of`, cache. */
import type { Request } from 'express'
import { LRUCache } from 'lru-cache'
import { DATASET_VERSION, LICENCE, type Columns } from '../../pipeline/contract/dataset.ts'
import type { ApplyLimits } from '../accounts/rate-limiter.ts'
import type { Handler, Headers } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import {
  createBodyCache,
  encodedTag,
  type Encoding,
  encodingHeader,
  ENCODINGS,
  preferredEncoding,
} from '../http/encodings.ts'
import { isNotModified } from '../http/headers.ts'
import { queryString, sendBody } from '../http/respond.ts'
import { DATASETS_PATH } from '../paths.ts'
import { attachmentHeader, chooseFormat, FORMATS, type Format, type Table } from './formats.ts'
import { linkField, type Page } from './links.ts'
import type { Snapshots } from './snapshots/current.ts'
import type { Snapshot, SnapshotFacts } from './snapshots/facts.ts'
import type { DateWindow } from './window.ts'

/** A query string for rows, before a snapshot is chosen. */
export interface RowsQuery {
  readonly asOf: string | undefined
  readonly format: Format | undefined
  /** @throws {ApiError} 400 if the window would start after its end. */
  readonly resolve: (snapshot: SnapshotFacts) => Rows
}

/** Requested rows, with defaults and clamps applied: equal requests give equal ones. */
export interface Rows {
  /** The path of the operation. */
  readonly path: string
  /** Unique per request, in characters that an entity tag allows. */
  readonly key: string
  /** Every parameter written out, except snapshot and format. */
  readonly parameters: readonly (readonly [name: string, value: string])[]
  readonly window: DateWindow
  readonly page?: Page
  readonly columns: Columns
  /** Additional metadata of a file. */
  readonly metadata: Readonly<Record<string, string>>
  /**
   * Reads them, and their total over all pages in the unit of limit and offset, if there are pages.
   * @throws {ApiError} 400 if the snapshot lacks the requested apps.
   */
  readonly read: (snapshot: Snapshot) => Promise<{ readonly rows: Table['rows']; readonly total?: number }>
}

/** What a request gets, known before the count and the query: format, coding, tag. */
interface Representation {
  readonly snapshot: Snapshot
  readonly rows: Rows
  readonly format: Format
  readonly encoding: Encoding
  /** Its name without the coding, unique over snapshots, rows and formats. */
  readonly name: string
  readonly etag: string
}

/** The bytes of a representation, and the headers that depend on the rows. */
interface Made {
  readonly body: Buffer
  readonly headers: Headers
}

/** The cache of bodies: made once for concurrent requests. */
export interface Bodies {
  /** The body of a representation; its snapshot must stay open meanwhile. */
  get(representation: Representation): Promise<Made>
  /** Makes bodies in advance. */
  warm(snapshot: Snapshot, rows: readonly Rows[]): Promise<void>
}

/** Bytes of all cached bodies together. */
const CACHE_BYTES = 64 * 1024 * 1024

/** Query strings whose result is cached: programs repeat the same request. */
const CACHED_QUERIES = 500

// A pinned reply never changes, but its snapshot may be retracted: caches must revalidate.
const CACHE_CONTROL = 'private, max-age=300, must-revalidate'

/** The cached bodies of this process. */
export function createBodies(): Bodies {
  const keep = createBodyCache<Made>(CACHE_BYTES)
  const get = (representation: Representation) =>
    keep(representation.name, representation.encoding, () => makeBody(representation))
  return {
    get,
    async warm(snapshot, requested) {
      for (const rows of requested) {
        for (const encoding of ENCODINGS) await get(represent({ snapshot, rows, format: 'json', encoding }))
      }
    },
  }
}

export interface ReplyDependencies {
  readonly snapshots: Snapshots
  readonly bodies: Bodies
  readonly applyLimits: ApplyLimits
}

/**
 * Answers from the current snapshot, or from the one in `as_of`, and applies the limits to each request.
 * @param parse reads a query string, still encoded, and throws a 400 that lists every fault.
 */
export function replyRows(
  { snapshots, bodies, applyLimits }: ReplyDependencies,
  parse: (query: string) => RowsQuery,
): Handler {
  const queries = new LRUCache<string, RowsQuery>({ max: CACHED_QUERIES, memoMethod: parse })
  return async (request, reply) => {
    using held = new DisposableStack()
    let found: Representation | undefined
    let refusal: unknown
    try {
      const query = queries.memo(queryString(request))
      const snapshot = held.use(await snapshots.take(query.asOf, 'clients'))
      found = represent({ snapshot, rows: query.resolve(snapshot), ...negotiate(request, query) })
    } catch (error) {
      refusal = error
    }
    const isHead = request.method === 'HEAD'
    const isUnchanged =
      found !== undefined &&
      isNotModified(request.headers, { etag: found.etag, lastModified: new Date(found.snapshot.asOf) })
    // A 304, a HEAD and a request before the first snapshot do not count (CONTRACT 4.5). A 503 from overload does: it
    // is counted before the query.
    const isFree = isHead || isUnchanged || (refusal instanceof ApiError && refusal.status === 503)
    // Counted before the reply: a used-up limit takes precedence over invalid parameters (CONTRACT 4.1).
    await applyLimits(reply, isFree ? 'free' : 'counted')
    if (found === undefined) throw refusal
    reply.set(headersOf(found))
    if (isUnchanged) return void reply.status(304).end()
    const { contentType } = FORMATS[found.format]
    // A HEAD is free, so it must not cost a query: it has no Content-Length, and no links to pages.
    if (isHead) return void reply.set({ 'Content-Type': contentType, Link: linkField(found) }).end()
    const { headers, body } = await bodies.get(found)
    sendBody(reply.set(headers), 200, contentType, body)
  }
}

/** @throws {ApiError} 406 if there is no format that the client accepts. */
function negotiate(
  request: Request,
  { format: named }: RowsQuery,
): Pick<Representation, 'format' | 'encoding'> {
  const format = chooseFormat(request, named)
  return { format, encoding: FORMATS[format].isCompressed ? 'identity' : preferredEncoding(request) }
}

function represent(chosen: Omit<Representation, 'name' | 'etag'>): Representation {
  const name = `${chosen.snapshot.id}.${chosen.rows.key}.${chosen.format}`
  return { ...chosen, name, etag: encodedTag(name, chosen.encoding) }
}

/** The headers of a representation, whether sent, unchanged or for HEAD. */
function headersOf({ snapshot, rows, format, encoding, etag }: Representation): Headers {
  return {
    ETag: etag,
    'Last-Modified': new Date(snapshot.asOf).toUTCString(),
    'Cache-Control': CACHE_CONTROL,
    Vary: 'Accept, Accept-Encoding, Authorization',
    ...encodingHeader(encoding),
    ...(format === 'json' ? {} : attachmentHeader(fileName(rows, format))),
  }
}

/** Characters of a word in a file name: a list of many apps is left out. */
const LONGEST_WORD = 40

/** A descriptive file name: the dataset, the request, the window. */
function fileName({ path, metadata, window }: Rows, format: Format): string {
  const dataset = path.slice(DATASETS_PATH.length + 1).replaceAll('/', '-')
  const short = Object.values(metadata).filter((word) => word !== '' && word.length <= LONGEST_WORD)
  const words = [dataset, ...short, window.start, window.end]
  return `${words.join('_').replaceAll(' ', '-')}.${format}`
}

async function makeBody(representation: Representation): Promise<Made> {
  const { snapshot, rows: requested, format } = representation
  const { rows, total } = await requested.read(snapshot)
  const { columns, metadata, window } = requested
  const meta = {
    as_of: snapshot.asOf,
    start_date: window.start,
    end_date: window.end,
    version: DATASET_VERSION,
  }
  const licence = { license: LICENCE.name, license_url: LICENCE.url, attribution: snapshot.attribution }
  return {
    body: FORMATS[format].encode({ columns, rows, meta, metadata: { ...meta, ...metadata, ...licence } }),
    headers: {
      Link: linkField(representation, total),
      ...(total === undefined ? {} : { 'X-Total-Count': String(total) }),
    },
  }
}
