/** What a rankings request will get, as far as it follows from its text alone: most of them were sent before. */
import type { Request } from 'express'
import type { Call } from '../../http/call.ts'
import { encodingHeader, preferredEncoding } from '../../http/protocol/encodings.ts'
import { headLines, type HeadLines } from '../../http/ready-head.ts'
import { createMemo } from '../../process/memo.ts'
import { queryString } from '../../http/respond.ts'
import { representationOf, type Representation } from './replies.ts'
import { chooseFormat } from '../formats/formats.ts'
import { pinnedAddress, type Place } from './links.ts'
import { parseParameters, type Parameters } from './parameters.ts'
import { resolveQuery } from './query.ts'
import type { SnapshotFacts } from '../snapshots/open-snapshot.ts'

/** A reply before its body. */
export interface Plan {
  readonly query: Place['query']
  readonly format: Place['format']
  readonly representation: Representation
  readonly lastModified: Date
  /** All headers that every such reply has, but for those of the body and the page. */
  readonly lines: HeadLines
}

export interface Planner {
  /** @throws {ApiError} 400 that lists every fault of the parameters. */
  parametersOf(request: Request): Parameters
  /** @throws {ApiError} 400 or 406 when there is nothing to get. */
  planOf(call: Call, parameters: Parameters, snapshot: SnapshotFacts): Plan
}

const SOON_OUT_OF_DATE = 'private, max-age=300, must-revalidate'
// What a snapshot says never changes, but it may be withdrawn.
const NEVER_OUT_OF_DATE = 'private, max-age=86400'

/** Requests that are remembered, about a kilobyte each. */
const REMEMBERED = 2000

/** The plans of one path. */
export function createPlanner(): Planner {
  const parameters = createMemo<Parameters>(REMEMBERED)
  const plans = createMemo<Plan>(REMEMBERED)
  return {
    parametersOf(request) {
      const query = queryString(request)
      return parameters(query, () => parseParameters(query))
    },
    planOf(call, parsed, snapshot) {
      const { request } = call
      const { accept, 'accept-encoding': acceptEncoding } = request.headers
      const key = JSON.stringify([snapshot.id, accept, acceptEncoding, queryString(request)])
      return plans(key, () => makePlan(call, parsed, snapshot))
    },
  }
}

function makePlan({ request, reply }: Call, parameters: Parameters, snapshot: SnapshotFacts): Plan {
  const query = resolveQuery(parameters, snapshot.dataThrough)
  const format = chooseFormat(request, parameters.format)
  // Parquet is compressed itself.
  const encoding = format === 'parquet' ? 'identity' : preferredEncoding(request)
  const place = { snapshot, query, format }
  const representation = representationOf(place, encoding)
  const lastModified = new Date(snapshot.asOf)
  const headers = {
    ...reply.locals.standing,
    ETag: representation.etag,
    'Last-Modified': lastModified.toUTCString(),
    'Cache-Control': parameters.as_of === undefined ? SOON_OUT_OF_DATE : NEVER_OUT_OF_DATE,
    'Content-Location': pinnedAddress(place),
    Vary: 'Accept, Accept-Encoding, Authorization',
    ...encodingHeader(encoding),
  }
  return { query, format, representation, lastModified, lines: headLines(headers) }
}
