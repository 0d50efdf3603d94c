/** What a rankings request will get, as far as it follows from its text alone: most of them were sent before. */
import type { Request } from 'express'
import type { Validators } from '../http/conditional.ts'
import { encodedTag, encodingHeader, preferredEncoding, type Encoding } from '../http/encodings.ts'
import { createMemo } from '../memo.ts'
import { queryString } from '../respond.ts'
import { keyOf } from './answers.ts'
import { chooseFormat } from './formats.ts'
import { pinnedAddress, type Place } from './links.ts'
import { parseParameters, type Parameters } from './parameters.ts'
import { resolveQuery } from './query.ts'
import type { SnapshotFacts } from './snapshot.ts'

/** A reply before its body. */
export interface Plan {
  readonly query: Place['query']
  readonly format: Place['format']
  readonly encoding: Encoding
  readonly validators: Required<Validators>
  /** All headers but those of the body and the links of the page. */
  readonly headers: Readonly<Record<string, string>>
}

export interface Planner {
  /** @throws {ApiError} 400 that lists every fault of the parameters. */
  parametersOf(request: Request): Parameters
  /** @throws {ApiError} 400 or 406 when there is nothing to get. */
  planOf(request: Request, parameters: Parameters, snapshot: SnapshotFacts): Plan
}

/** Requests that are remembered, about a kilobyte each. */
const REMEMBERED = 2000

/** The plans of this process. */
export function createPlanner(): Planner {
  const parameters = createMemo<Parameters>(REMEMBERED)
  const plans = createMemo<Plan>(REMEMBERED)
  return {
    parametersOf(request) {
      const query = queryString(request)
      return parameters(query, () => parseParameters(query))
    },
    planOf(request, parsed, snapshot) {
      const { accept, 'accept-encoding': acceptEncoding } = request.headers
      const key = JSON.stringify([snapshot.id, accept, acceptEncoding, queryString(request)])
      return plans(key, () => makePlan(request, parsed, snapshot))
    },
  }
}

function makePlan(request: Request, parameters: Parameters, snapshot: SnapshotFacts): Plan {
  const query = resolveQuery(parameters, snapshot.dataThrough)
  const format = chooseFormat(request, parameters.format)
  // Parquet is compressed itself.
  const encoding = format === 'parquet' ? 'identity' : preferredEncoding(request)
  const place = { snapshot, query, format }
  const validators = validatorsOf(place, encoding)
  return {
    query,
    format,
    encoding,
    validators,
    headers: {
      ...cachingHeaders(place, validators, parameters.as_of !== undefined),
      ...encodingHeader(encoding),
    },
  }
}

function validatorsOf(place: Place, encoding: Encoding): Required<Validators> {
  return { etag: encodedTag(keyOf(place), encoding), lastModified: new Date(place.snapshot.asOf) }
}

function cachingHeaders(
  place: Place,
  { etag, lastModified }: Required<Validators>,
  pinned: boolean,
): Readonly<Record<string, string>> {
  return {
    ETag: etag,
    'Last-Modified': lastModified.toUTCString(),
    // What a snapshot says never changes, but it may be withdrawn.
    'Cache-Control': pinned ? 'private, max-age=86400' : 'private, max-age=300, must-revalidate',
    'Content-Location': pinnedAddress(place),
    Vary: 'Accept, Accept-Encoding, Authorization',
  }
}
