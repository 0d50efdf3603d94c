/** The forms in which rankings are handed out, and how a request chooses one (CONTRACT 4.6). */
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
  /** What a client makes of the body. */
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

/** A parameter of a media type, such as charset: there is one form of each, whatever it asks for. `q` is no parameter. */
const PARAMETER = /;\s*(?!q\s*=)[^\s;,="]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*)/gi

/**
 * The format of a reply: what `format=` names, else what `Accept` prefers, JSON where it does not care.
 * @throws {ApiError} 406 that lists what exists.
 */
export function chooseFormat(request: Request, asked: Format | undefined): Format {
  if (asked !== undefined) return asked
  const accept = request.headers.accept?.replaceAll(PARAMETER, '')
  const mediaTypes = FORMAT_NAMES.map((name) => FORMATS[name].mediaType)
  // Express looks at the headers alone.
  const mediaType = request.accepts.call({ headers: { ...request.headers, accept } }, ...mediaTypes)
  const chosen = FORMAT_NAMES.find((name) => FORMATS[name].mediaType === mediaType)
  if (chosen === undefined) throw notAcceptable()
  return chosen
}

function notAcceptable(): ApiError {
  const available = FORMAT_NAMES.map((name) => FORMATS[name].mediaType)
  return new ApiError(
    406,
    `Nothing of what Accept names exists here; available: ${available.join(', ')}, also by format=${FORMAT_NAMES.join('|')}`,
    { metadata: { available } },
  )
}

/** The header by which a reply is kept as a file of this name. */
export function attachmentHeader(name: string): Headers {
  return { 'Content-Disposition': `attachment; filename="${name}"` }
}
