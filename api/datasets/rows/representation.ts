/** What a request gets, known before it is counted and before the data is queried: format, coding, headers. */
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

// A pinned answer never changes, but its snapshot may be retracted: nobody shows it for longer without asking again.
const CACHE_CONTROL = 'private, max-age=300, must-revalidate'

/** One of the codings of an answer. */
export interface Representation extends Place {
  readonly encoding: Encoding
  /** What tells it, in whatever coding, from all others. */
  readonly name: string
  /** The entity tag, which tells it from all others: from those of other snapshots, questions, formats and codings. */
  readonly etag: string
}

/** The representation of what is asked at this place, in this coding. */
export function representationOf<Of extends Place>(place: Of, encoding: Encoding): Of & Representation {
  const { snapshot, question, format, hasMark } = place
  const form = hasMark === true ? `${format}-bom` : format
  const name = `${snapshot.id}.${question.key}.${form}`
  return { ...place, encoding, name, etag: encodedTag(name, encoding) }
}

/** The form in which a request wants its rows, whichever they are. */
export type Form = Pick<Representation, 'format' | 'hasMark' | 'encoding'>

/**
 * The form that a request gets.
 * @throws {ApiError} 400 or 406 when there is none.
 */
export function chooseForm(
  request: Request,
  { format: named, hasMark }: Pick<RowsRequest, 'format' | 'hasMark'>,
): Form {
  const format = chooseFormat(request, named)
  if (hasMark && format !== 'csv') throw badRequest([invalid('bom', '1', PARAMETERS.bom.allowed)])
  return { format, hasMark, encoding: FORMATS[format].isCompressed ? 'identity' : preferredEncoding(request) }
}

/** The headers that a representation has, be it sent, unchanged or asked for by HEAD. */
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

/** A name that tells what the file is: the dataset, what was asked, the window. */
function fileName({ question, format }: Place): string {
  const { path, metadata, window } = question
  const dataset = path.slice(DATASETS_PATH.length + 1).replaceAll('/', '-')
  const words = [dataset, ...Object.values(metadata), window.start, window.end].filter((word) => word !== '')
  return `${words.join('_').replaceAll(' ', '-')}.${format}`
}
