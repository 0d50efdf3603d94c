/** What a rankings request gets, known before it is counted and before the data is queried: format, coding, headers. */
import type { Request } from 'express'
import type { Headers } from '../../http/call.ts'
import {
  encodedTag,
  encodingHeader,
  preferredEncoding,
  type Encoding,
} from '../../http/protocol/encodings.ts'
import { chooseFormat, FORMATS } from '../formats/formats.ts'
import type { SnapshotFacts } from '../snapshots/open-snapshot.ts'
import { pinnedAddress, type Place } from './links.ts'
import type { Parameters } from './parameters.ts'
import { resolveQuery } from './query.ts'

const SOON_OUT_OF_DATE = 'private, max-age=300, must-revalidate'
// What a snapshot says never changes, but it may be withdrawn.
const NEVER_OUT_OF_DATE = 'private, max-age=86400'

/** One of the codings of an answer. */
export interface Representation extends Place {
  readonly encoding: Encoding
  /** The entity tag, which tells it from all others: from those of other snapshots, queries, formats and codings. */
  readonly etag: string
}

/** The representation of what is asked at this place, in this coding. */
export function representationOf<Of extends Place>(place: Of, encoding: Encoding): Of & Representation {
  return { ...place, encoding, etag: encodedTag(keyOf(place), encoding) }
}

/**
 * The representation that a request with these parameters gets.
 * @throws {ApiError} 400 or 406 when there is none.
 */
export function chooseRepresentation<Snapshot extends SnapshotFacts>(
  request: Request,
  parameters: Parameters,
  snapshot: Snapshot,
) {
  const query = resolveQuery(parameters, snapshot.dataThrough)
  const format = chooseFormat(request, parameters.format)
  const encoding = FORMATS[format].isCompressed ? 'identity' : preferredEncoding(request)
  return representationOf({ snapshot, query, format }, encoding)
}

/** The headers that a representation has, be it sent, unchanged or asked for by HEAD. */
export function representationHeaders(representation: Representation, { as_of }: Parameters): Headers {
  const { snapshot, etag, encoding } = representation
  return {
    ETag: etag,
    'Last-Modified': new Date(snapshot.asOf).toUTCString(),
    'Cache-Control': as_of === undefined ? SOON_OUT_OF_DATE : NEVER_OUT_OF_DATE,
    'Content-Location': pinnedAddress(representation),
    Vary: 'Accept, Accept-Encoding, Authorization',
    ...encodingHeader(encoding),
  }
}

/** What tells answers apart: every part is one of a closed set, a date or a number. */
function keyOf({ snapshot, query, format }: Place): string {
  const { sort, category, subcategory, start, end, limit, offset } = query
  return [snapshot.id, sort, subcategory ?? category ?? 'all', start, end, limit, offset, format].join('.')
}
