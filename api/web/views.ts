/** Views of a snapshot for people, as bytes: rendered once for concurrent requests, then cached (CONTRACT 4.6). */
import { createHash } from 'node:crypto'
import type { SnapshotEntry } from '../datasets/snapshots/catalogue.ts'
import type { Snapshots } from '../datasets/snapshots/current.ts'
import type { Snapshot } from '../datasets/snapshots/facts.ts'
import { SOON_STALE } from '../datasets/snapshots/files.ts'
import { isStale } from '../datasets/status.ts'
import { clientDisconnected, queryString, sendBody, type Clock, type Handler } from '../http/call.ts'
import {
  createBodyCache,
  encodedTag,
  type Encoding,
  encodingHeader,
  ENCODINGS,
  preferredEncoding,
} from '../http/encodings.ts'
import { isNotModified } from '../http/headers.ts'
import { readParameters, type Given, type ParameterTable } from '../http/query-parameters.ts'
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
  /** Public origin of the service, as far as it is known. */
  readonly origin: string
  /** The last part of the path, for views with one. */
  readonly id: string
}

/** A page or a file. */
export interface View {
  readonly contentType: string
  /** Its parameters; `as_of` chooses the snapshot. */
  readonly parameters: ParameterTable
  /** @throws {ApiError} for an invalid request, or if the snapshot lacks the requested thing. */
  readonly make: (context: ViewContext, given: Given) => Promise<string> | string
}

interface ViewDependencies {
  readonly snapshots: Snapshots
  readonly schedule: CronSchedule
  readonly clock: Clock
  readonly origin: string
}

/** What is shown of a view. */
interface Chosen extends Pick<ViewContext, 'snapshot' | 'isCurrent' | 'id'> {
  readonly path: string
  readonly given: Given
}

export type Views = ReturnType<typeof createViews>

/** Bytes of all cached views together. */
const CACHE_BYTES = 32 * 1024 * 1024

export function createViews({ snapshots, schedule, clock, origin }: ViewDependencies) {
  const keep = createBodyCache<{ readonly body: Buffer; readonly checksum: string }>(CACHE_BYTES)

  async function get(
    view: View,
    { path, given, ...shown }: Chosen,
    encoding: Encoding,
    signal?: AbortSignal,
  ) {
    const entries = snapshots.catalogue.read().entries.filter(({ state }) => state === 'retained')
    const { id, dataThrough } = shown.snapshot
    const context = { ...shown, isStale: isStale(dataThrough, schedule, clock()), entries, origin }
    // The newest snapshot and their number stand for the list of snapshots.
    const key = [path, id, given, context.isCurrent, context.isStale, entries[0]?.id, entries.length]
    const make = async () => {
      const text = await view.make(context, given)
      return { body: Buffer.from(text), checksum: createHash('sha256').update(text).digest('hex') }
    }
    return await keep(JSON.stringify(key), encoding, make, signal)
  }

  return {
    /** The handler that answers with a view. */
    serve: (view: View): Handler => {
      return async (request, reply) => {
        const given = readFilled(view.parameters, queryString(request))
        const { as_of }: { as_of?: string } = given
        const signal = clientDisconnected(reply)
        using snapshot = await snapshots.take(as_of, 'pages', signal)
        const isCurrent = snapshots.current()?.id === snapshot.id
        const id = String(request.params['id'] ?? '')
        const encoding = preferredEncoding(request)
        const chosen = { snapshot, isCurrent, id, path: request.path, given }
        const { body, checksum } = await get(view, chosen, encoding, signal)
        const etag = encodedTag(checksum, encoding)
        reply.set({ 'Cache-Control': SOON_STALE, Vary: 'Accept-Encoding', ETag: etag })
        if (view.contentType === HTML) reply.set(DOCUMENT_HEADERS)
        if (isNotModified(request.headers, { etag })) return void reply.status(304).end()
        sendBody(reply.set(encodingHeader(encoding)), 200, view.contentType, body)
      }
    },
    /** Renders a view before its snapshot is served. */
    async warm(view: View, snapshot: Snapshot, path: string, given: Given): Promise<void> {
      const chosen = { snapshot, isCurrent: true, id: '', path, given }
      for (const encoding of ENCODINGS) await get(view, chosen, encoding)
    },
  }
}

/** Reads a query string; empty values are what forms send for fields that are not filled in. */
function readFilled(table: ParameterTable, query: string): Given {
  const filled = [...new URLSearchParams(query)].filter(([, value]) => value !== '')
  return readParameters(table, new URLSearchParams(filled).toString())
}
