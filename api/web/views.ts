/** Views of a snapshot for people, as bytes: rendered once for concurrent requests, then cached (CONTRACT 4.6). */
import { createHash } from 'node:crypto'
import type { Catalogue, SnapshotEntry } from '../datasets/snapshots/catalogue.ts'
import type { Snapshots } from '../datasets/snapshots/current.ts'
import type { Snapshot } from '../datasets/snapshots/facts.ts'
import { isStale } from '../datasets/status.ts'
import { clientDisconnected, type Clock, type Handler } from '../http/call.ts'
import {
  createBodyCache,
  encodedTag,
  type Encoding,
  encodingHeader,
  ENCODINGS,
  preferredEncoding,
} from '../http/encodings.ts'
import { isNotModified } from '../http/headers.ts'
import { readParameters, type ParameterTable } from '../http/query-parameters.ts'
import { queryString, sendBody } from '../http/respond.ts'
import type { CronSchedule } from '../process/cron-schedule.ts'
import { DOCUMENT_HEADERS, HTML } from './html.ts'

/** The inputs of a view beside its parameters. */
export interface ViewContext {
  readonly snapshot: Snapshot
  readonly isCurrent: boolean
  /** Whether due days are missing at the end of the data. */
  readonly isStale: boolean
  /** All retained snapshots, newest first. */
  readonly entries: readonly SnapshotEntry[]
  readonly publisher: string
  /** Public origin of the service, as far as it is known. */
  readonly origin: string
}

/** Values of parameters by name, without defaults. */
type Given = Readonly<Record<string, unknown>>

/** A page or a file. */
export interface View {
  readonly contentType: string
  /** Its parameters; `as_of` chooses the snapshot. */
  readonly parameters: ParameterTable
  /**
   * @param id the last part of its path, for views with one.
   * @throws {ApiError} for an invalid request, or if the snapshot lacks the requested thing.
   */
  readonly make: (context: ViewContext, given: Given, id: string) => Promise<string> | string
}

export interface Views {
  /** The handler that answers with a view. */
  serve(snapshots: Snapshots, view: View): Handler
  /** Renders a view before its snapshot is served. */
  warm(snapshot: Snapshot, view: View, path: string, given: Given): Promise<void>
}

interface ViewDependencies {
  readonly catalogue: Catalogue
  readonly schedule: CronSchedule
  readonly clock: Clock
  readonly origin: string
}

interface Address extends Pick<ViewContext, 'snapshot' | 'isCurrent'> {
  readonly path: string
  readonly given: Given
  readonly id?: string
}

/** Bytes of all cached views together. */
const CACHE_BYTES = 32 * 1024 * 1024

export function createViews({ catalogue, schedule, clock, origin }: ViewDependencies): Views {
  const keep = createBodyCache<{ readonly body: Buffer; readonly checksum: string }>(CACHE_BYTES)

  async function get(view: View, address: Address, encoding: Encoding, signal?: AbortSignal) {
    const { snapshot, isCurrent, path, given, id = '' } = address
    const entries = catalogue.read().entries.filter(({ state }) => state === 'retained')
    const stale = isStale(snapshot.dataThrough, schedule, clock())
    // The newest snapshot and their number stand for the list of snapshots.
    const key = [path, snapshot.id, given, isCurrent, stale, entries[0]?.id, entries.length]
    const make = async () => {
      const publisher = entries.find((entry) => entry.id === snapshot.id)?.publisher ?? 'App Rankings'
      const context = { snapshot, isCurrent, isStale: stale, entries, publisher, origin }
      const body = Buffer.from(await view.make(context, given, id))
      return { body, checksum: createHash('sha256').update(body).digest('hex') }
    }
    return await keep(JSON.stringify(key), encoding, make, signal)
  }

  return {
    serve: (snapshots, view) => async (request, reply) => {
      const given = readFilled(view.parameters, queryString(request))
      const signal = clientDisconnected(reply)
      const { as_of }: { as_of?: string } = given
      using snapshot = await snapshots.take(as_of, 'pages', signal)
      const isCurrent = snapshots.current()?.id === snapshot.id
      const encoding = preferredEncoding(request)
      const address = {
        snapshot,
        isCurrent,
        path: request.path,
        given,
        id: String(request.params['id'] ?? ''),
      }
      const { body, checksum } = await get(view, address, encoding, signal)
      const etag = encodedTag(checksum, encoding)
      const cacheControl = 'public, max-age=60, must-revalidate'
      reply.set({ 'Cache-Control': cacheControl, Vary: 'Accept-Encoding', ETag: etag })
      if (view.contentType === HTML) reply.set(DOCUMENT_HEADERS)
      if (isNotModified(request.headers, { etag })) return void reply.status(304).end()
      sendBody(reply.set(encodingHeader(encoding)), 200, view.contentType, body)
    },
    async warm(snapshot, view, path, given) {
      const address = { snapshot, isCurrent: true, path, given }
      for (const encoding of ENCODINGS) await get(view, address, encoding)
    },
  }
}

/** Reads a query string; empty values are what forms send for fields that are not filled in. */
function readFilled(table: ParameterTable, query: string): Given {
  const filled = [...new URLSearchParams(query)].filter(([, value]) => value !== '')
  return readParameters(table, new URLSearchParams(filled).toString())
}
