/** Views of a snapshot for people, as bytes: rendered once for concurrent requests, then cached (CONTRACT 4.6). */
import { createHash } from 'node:crypto'
import type { Request } from 'express'
import { wholeSeconds } from '../../pipeline/contract/calendar.ts'
import type { Retraction } from '../../pipeline/contract/snapshot-record.ts'
import type { SnapshotCatalogue, SnapshotEntry } from '../datasets/snapshots/catalogue.ts'
import { useSnapshot, type Snapshots } from '../datasets/snapshots/choose.ts'
import type { ReadableSnapshot, Snapshot } from '../datasets/snapshots/open-snapshot.ts'
import type { Clock, Handler, Headers } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import { createBodyCache } from '../http/protocol/body-cache.ts'
import { isNotModified } from '../http/protocol/conditional.ts'
import { encodedTag, encodingHeader, ENCODINGS, preferredEncoding } from '../http/protocol/encodings.ts'
import type { Encoding } from '../http/protocol/encodings.ts'
import { sendBody } from '../http/respond.ts'
import type { CronSchedule } from '../process/cron-schedule.ts'
import { createSerialQueue } from '../process/serial-queue.ts'
import { ageOf, type Age } from './age.ts'
import { CONTENT_SECURITY_POLICY, HTML } from './document.ts'

/** The inputs of a view beside its parameters. */
export interface ViewContext {
  readonly snapshot: ReadableSnapshot
  readonly isCurrent: boolean
  /** All retained snapshots, newest first. */
  readonly entries: readonly SnapshotEntry[]
  /** The withdrawn snapshots, newest first. */
  readonly retractions: readonly Retraction[]
  /** Public origin of the service, as far as it is known. */
  readonly origin: string
  readonly freshness: { readonly age: Age; readonly nextRun: string | undefined }
}

/** A page, table or drawing. `Asked` has the parameters of a request, without defaults. */
export interface View<Asked extends ViewRequest> {
  readonly name: string
  readonly contentType: string
  /** @throws {ApiError} for an invalid request. */
  readonly read: (request: Request) => Asked
  /** @throws {ApiError} if the snapshot lacks the requested thing. */
  readonly make: (context: ViewContext, asked: Asked) => Promise<string | Buffer>
}

/** The parameters of every view. */
export interface ViewRequest {
  readonly parameters: {
    /** The requested snapshot; the current one by default. */
    readonly as_of?: string | undefined
  }
}

/** A view with its parameters. */
interface Question<Asked extends ViewRequest> {
  readonly view: View<Asked>
  readonly asked: Asked
  readonly isCurrent: boolean
  readonly encoding: Encoding
}

export interface Views {
  /** The bytes of a view of this snapshot, which must stay open meanwhile. */
  get<Asked extends ViewRequest>(snapshot: Snapshot, question: Question<Asked>): Promise<Made>
  /** Renders a view before its snapshot is served. */
  warm<Asked extends ViewRequest>(snapshot: Snapshot, view: View<Asked>, asked: Asked): Promise<void>
}

export interface ViewDependencies {
  readonly catalogue: SnapshotCatalogue
  readonly schedule: CronSchedule
  readonly clock: Clock
  readonly origin: string
}

interface Made {
  readonly body: Buffer
  /** Checksum of the body before compression. */
  readonly checksum: string
}

/** Bytes of all cached views together. */
const CACHE_BYTES = 32 * 1024 * 1024

export function createViews({ catalogue, schedule, clock, origin }: ViewDependencies): Views {
  const keep = createBodyCache<Made>(CACHE_BYTES)
  // One at a time: an uncached view waits instead of failing with too many queries.
  const inLine = createSerialQueue()

  const contexts = new Map<string, ViewContext>()

  // Reads folders, so concurrent requests of one turn of the event loop share the result.
  function contextOf(snapshot: Snapshot, isCurrent: boolean): ViewContext {
    const key = `${snapshot.id} ${isCurrent}`
    const context = contexts.get(key) ?? readContext(snapshot, isCurrent)
    if (contexts.size === 0) setImmediate(() => contexts.clear())
    contexts.set(key, context)
    return context
  }

  function readContext(snapshot: Snapshot, isCurrent: boolean): ViewContext {
    const now = clock()
    const nextRun = schedule.next(now)
    return {
      snapshot: snapshot.forPages,
      isCurrent,
      entries: catalogue.list(),
      retractions: catalogue.retractions(),
      origin,
      freshness: {
        age: ageOf(snapshot, schedule, now),
        nextRun: nextRun === undefined ? undefined : wholeSeconds(nextRun),
      },
    }
  }

  async function get<Asked extends ViewRequest>(
    snapshot: Snapshot,
    question: Question<Asked>,
  ): Promise<Made> {
    const { view, asked, isCurrent, encoding } = question
    const context = contextOf(snapshot, isCurrent)
    return await keep(keyOf(context, question), encoding, async () => {
      const body = Buffer.from(await inLine(async () => await view.make(context, asked)))
      return { body, checksum: createHash('sha256').update(body).digest('hex') }
    })
  }

  return {
    get,
    async warm(snapshot, view, asked) {
      for (const encoding of ENCODINGS) await get(snapshot, { view, asked, isCurrent: true, encoding })
    },
  }
}

/** Answers requests with a view. */
export function serveView<Asked extends ViewRequest>(
  views: Views,
  snapshots: Snapshots,
  view: View<Asked>,
): Handler {
  const headers = headersOf(view.contentType)

  return async (request, reply) => {
    const asked = view.read(request)
    await useSnapshot(snapshots, asked.parameters.as_of, async (snapshot) => {
      if (snapshot instanceof ApiError) throw snapshot
      reply.set(headers)
      const isCurrent = snapshots.current.facts()?.id === snapshot.id
      // A PNG is compressed already.
      const encoding = view.contentType === 'image/png' ? 'identity' : preferredEncoding(request)
      const { body, checksum } = await views.get(snapshot, { view, asked, isCurrent, encoding })
      const etag = encodedTag(checksum, encoding)
      reply.set('ETag', etag)
      if (isNotModified(request.headers, { etag })) return void reply.status(304).end()
      reply.set(encodingHeader(encoding))
      sendBody(reply, 200, view.contentType, body)
    })
  }
}

/** Everything that determines the bytes. The newest snapshot and their number stand for the lists of snapshots. */
function keyOf<Asked extends ViewRequest>(
  { snapshot, entries, retractions, freshness }: ViewContext,
  { view, asked, isCurrent }: Question<Asked>,
): string {
  const list = [entries[0]?.id, entries.length, retractions.length]
  return JSON.stringify([view.name, snapshot.id, asked, isCurrent, list, freshness])
}

function headersOf(contentType: string): Headers {
  return {
    'Content-Type': contentType,
    'Cache-Control': 'public, max-age=60, must-revalidate',
    ...(contentType === HTML ? { 'Content-Security-Policy': CONTENT_SECURITY_POLICY } : {}),
    Vary: 'Accept-Encoding',
  }
}
