/** Views of a snapshot for people, as bytes: rendered once for concurrent requests, then cached (CONTRACT 4.6). */
import { createHash } from 'node:crypto'
import type { Request } from 'express'
import type { Retraction } from '../../pipeline/contract/snapshot-record.ts'
import type { SnapshotCatalogue, SnapshotEntry } from '../datasets/snapshots/catalogue.ts'
import type { Snapshots } from '../datasets/snapshots/current.ts'
import type { Snapshot, SnapshotFacts } from '../datasets/snapshots/facts.ts'
import { isOverdue, isStale } from '../datasets/status.ts'
import type { Clock, Handler } from '../http/call.ts'
import { clientLeft } from '../http/client-left.ts'
import { createBodyCache } from '../http/protocol/body-cache.ts'
import { isNotModified } from '../http/protocol/conditional.ts'
import { encodedTag, encodingHeader, ENCODINGS, preferredEncoding } from '../http/protocol/encodings.ts'
import type { Encoding } from '../http/protocol/encodings.ts'
import { sendBody } from '../http/respond.ts'
import type { CronSchedule } from '../process/cron-schedule.ts'
import { CONTENT_SECURITY_POLICY, HTML } from './document.ts'

/**
 * The age of the data: all due days are present (`current`); days are missing although it was published after the last
 * due run (`ended`: no later usage was delivered); or no snapshot was published since (`overdue`).
 */
type Age = 'current' | 'ended' | 'overdue'

/** The inputs of a view beside its parameters. */
export interface ViewContext {
  readonly snapshot: Snapshot
  readonly isCurrent: boolean
  /** All retained snapshots, newest first. */
  readonly entries: readonly SnapshotEntry[]
  /** The withdrawn snapshots, newest first. */
  readonly retractions: readonly Retraction[]
  /** Public origin of the service, as far as it is known. */
  readonly origin: string
  readonly publisher: string
  readonly age: Age
}

/** A page or a file. `Asked` has the parameters of a request, without defaults. */
export interface View<Asked extends ViewRequest> {
  readonly name: string
  readonly contentType: string
  /** @throws {ApiError} for an invalid request. */
  readonly read: (request: Request) => Asked
  /** @throws {ApiError} if the snapshot lacks the requested thing. */
  readonly make: (context: ViewContext, asked: Asked) => Promise<string>
}

/** The parameters of every view. */
export interface ViewRequest {
  readonly parameters: {
    /** The requested snapshot; the current one by default. */
    readonly as_of?: string | undefined
  }
}

interface Made {
  readonly body: Buffer
  /** Checksum of the body before compression. */
  readonly checksum: string
}

interface Wanted<Asked extends ViewRequest> {
  readonly view: View<Asked>
  readonly asked: Asked
  readonly encoding: Encoding
  /** Aborts when the visitor leaves. */
  readonly signal?: AbortSignal
}

export interface Views {
  /** The handler that answers with a view. */
  serve<Asked extends ViewRequest>(snapshots: Snapshots, view: View<Asked>): Handler
  /** Renders a view before its snapshot is served; over connections of its own, so that no visitor delays it. */
  warm<Asked extends ViewRequest>(snapshot: Snapshot, view: View<Asked>, asked: Asked): Promise<void>
}

interface ViewDependencies {
  readonly catalogue: SnapshotCatalogue
  readonly schedule: CronSchedule
  readonly clock: Clock
  readonly origin: string
}

/** Bytes of all cached views together. */
const CACHE_BYTES = 32 * 1024 * 1024

export function createViews(dependencies: ViewDependencies): Views {
  const keep = createBodyCache<Made>(CACHE_BYTES)
  const contextOf = createContexts(dependencies)

  // The newest snapshot and their number stand for the lists of snapshots.
  async function get<Asked extends ViewRequest>(
    context: ViewContext,
    { view, asked, encoding, signal }: Wanted<Asked>,
  ): Promise<Made> {
    const { snapshot, isCurrent, entries, retractions, age } = context
    const list = [entries[0]?.id, entries.length, retractions.length]
    const key = JSON.stringify([view.name, snapshot.id, asked, isCurrent, list, age])
    return await keep(
      key,
      encoding,
      async () => {
        const body = Buffer.from(await view.make(context, asked))
        return { body, checksum: createHash('sha256').update(body).digest('hex') }
      },
      signal,
    )
  }

  return {
    serve: (snapshots, view) => async (request, reply) => {
      const asked = view.read(request)
      const signal = clientLeft(reply)
      using snapshot = await snapshots.take(asked.parameters.as_of, 'pages', signal)
      const context = contextOf(snapshot, snapshots.current.facts()?.id === snapshot.id)
      const encoding = preferredEncoding(request)
      const { body, checksum } = await get(context, { view, asked, encoding, signal })
      const etag = encodedTag(checksum, encoding)
      reply.set({
        'Content-Type': view.contentType,
        'Cache-Control': 'public, max-age=60, must-revalidate',
        Vary: 'Accept-Encoding',
        ETag: etag,
        ...(view.contentType === HTML ? { 'Content-Security-Policy': CONTENT_SECURITY_POLICY } : {}),
      })
      if (isNotModified(request.headers, { etag })) return void reply.status(304).end()
      sendBody(reply.set(encodingHeader(encoding)), 200, view.contentType, body)
    },
    async warm(snapshot, view, asked) {
      for (const encoding of ENCODINGS) await get(contextOf(snapshot, true), { view, asked, encoding })
    },
  }
}

function createContexts({ catalogue, schedule, clock, origin }: ViewDependencies) {
  return (snapshot: Snapshot, isCurrent: boolean): ViewContext => {
    const entries = catalogue.list()
    const publisher = entries.find(({ id }) => id === snapshot.id)?.publisher ?? 'App Rankings'
    const age = ageOf(snapshot, schedule, clock())
    return { snapshot, isCurrent, entries, retractions: catalogue.retractions(), origin, publisher, age }
  }
}

function ageOf({ asOf, dataThrough }: SnapshotFacts, schedule: CronSchedule, now: Date): Age {
  if (!isStale(dataThrough, schedule, now)) return 'current'
  return isOverdue(asOf, schedule, now) ? 'overdue' : 'ended'
}
