/** The formats of rankings, and their negotiation (CONTRACT 4.6). */
import type { Request } from 'express'
import type { Headers } from '../../http/call.ts'
import { ApiError } from '../../http/errors.ts'

/** Every format by its name, in order of preference. */
export const FORMAT_NAMES = ['json', 'csv', 'parquet', 'arrow'] as const
export type Format = (typeof FORMAT_NAMES)[number]

interface FormatProperties {
  readonly mediaType: string
  readonly contentType: string
  /** Whether the format itself compresses. */
  readonly isCompressed: boolean
  /** How clients read the body. */
  readonly body: 'json' | 'text' | 'binary'
}

const PARQUET_TYPE = 'application/vnd.apache.parquet'
const ARROW_TYPE = 'application/vnd.apache.arrow.stream'

export const FORMATS: Readonly<Record<Format, FormatProperties>> = {
  json: {
    mediaType: 'application/json',
    contentType: 'application/json; charset=utf-8',
    isCompressed: false,
    body: 'json',
  },
  csv: {
    mediaType: 'text/csv',
    contentType: 'text/csv; charset=utf-8; header=present',
    isCompressed: false,
    body: 'text',
  },
  parquet: { mediaType: PARQUET_TYPE, contentType: PARQUET_TYPE, isCompressed: true, body: 'binary' },
  arrow: { mediaType: ARROW_TYPE, contentType: ARROW_TYPE, isCompressed: false, body: 'binary' },
}

/** A parameter of a media type, such as charset, is ignored. `q` is not a parameter. */
const PARAMETER = /;\s*(?!q\s*=)[^\s;,="]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*)/gi

/**
 * The format of a reply: by `format=`, otherwise by `Accept`, with JSON as the default.
 * @throws {ApiError} 406 that lists the formats.
 */
export function chooseFormat(request: Request, named: Format | undefined): Format {
  if (named !== undefined) return named
  const accept = request.headers.accept?.replaceAll(PARAMETER, '')
  const mediaTypes = FORMAT_NAMES.map((name) => FORMATS[name].mediaType)
  // Express reads only the headers.
  const mediaType = request.accepts.call({ headers: { ...request.headers, accept } }, ...mediaTypes)
  const chosen = FORMAT_NAMES.find((name) => FORMATS[name].mediaType === mediaType)
  if (chosen === undefined) throw notAcceptable()
  return chosen
}

function notAcceptable(): ApiError {
  const available = FORMAT_NAMES.map((name) => FORMATS[name].mediaType)
  return new ApiError(
    406,
    `None of the types in Accept exists here; available: ${available.join(', ')}, also by format=${FORMAT_NAMES.join('|')}`,
    { metadata: { available } },
  )
}

/** The Content-Disposition header for a download of this name. */
export function attachmentHeader(name: string): Headers {
  return { 'Content-Disposition': `attachment; filename="${name}"` }
}
