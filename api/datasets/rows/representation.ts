/** What a request gets, known before the count and the query: format, coding, headers. */
import type { Request } from 'express'
import type { Headers } from '../../http/call.ts'
import {
  encodedTag,
  encodingHeader,
  preferredEncoding,
  type Encoding,
} from '../../http/protocol/encodings.ts'
import { badRequest, invalid } from '../../http/protocol/query-parameters.ts'
import { DATASETS_PATH } from '../../paths.ts'
import { attachmentHeader, chooseFormat, FORMATS } from '../formats/formats.ts'
import { PARAMETERS } from '../rankings/parameters.ts'
import { pinnedAddress } from './links.ts'
import type { Place, RowsRequest } from './question.ts'

// A pinned answer never changes, but its snapshot may be retracted: caches must revalidate.
const CACHE_CONTROL = 'private, max-age=300, must-revalidate'

/** One coding of an answer. */
export interface Representation extends Place {
  readonly encoding: Encoding
  /** Its name without the coding, unique over snapshots, questions and formats. */
  readonly name: string
  readonly etag: string
}

/** The representation of a place in this coding. */
export function representationOf<Of extends Place>(place: Of, encoding: Encoding): Of & Representation {
  const { snapshot, question, format, hasMark } = place
  const form = hasMark === true ? `${format}-bom` : format
  const name = `${snapshot.id}.${question.key}.${form}`
  return { ...place, encoding, name, etag: encodedTag(name, encoding) }
}

/** The requested form of rows. */
export type Form = Pick<Representation, 'format' | 'hasMark' | 'encoding'>

/**
 * The form of a reply.
 * @throws {ApiError} 400 or 406 if there is none.
 */
export function chooseForm(
  request: Request,
  { format: named, hasMark }: Pick<RowsRequest, 'format' | 'hasMark'>,
): Form {
  const format = chooseFormat(request, named)
  if (hasMark && format !== 'csv') throw badRequest([invalid('bom', '1', PARAMETERS.bom.allowed)])
  return { format, hasMark, encoding: FORMATS[format].isCompressed ? 'identity' : preferredEncoding(request) }
}

/** The headers of a representation, whether sent, unchanged or for HEAD. */
export function representationHeaders(representation: Representation): Headers {
  const { snapshot, etag, encoding } = representation
  return {
    ETag: etag,
    'Last-Modified': new Date(snapshot.asOf).toUTCString(),
    'Cache-Control': CACHE_CONTROL,
    'Content-Location': pinnedAddress(representation),
    Vary: 'Accept, Accept-Encoding, Authorization',
    ...encodingHeader(encoding),
    ...(representation.format === 'json' ? {} : attachmentHeader(fileName(representation))),
  }
}

/** A descriptive file name: the dataset, the question, the window. */
function fileName({ question, format }: Place): string {
  const { path, metadata, window } = question
  const dataset = path.slice(DATASETS_PATH.length + 1).replaceAll('/', '-')
  const words = [dataset, ...Object.values(metadata), window.start, window.end].filter((word) => word !== '')
  return `${words.join('_').replaceAll(' ', '-')}.${format}`
}
