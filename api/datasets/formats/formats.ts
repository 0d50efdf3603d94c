/** The forms in which rankings are handed out, and how a request chooses one (CONTRACT 4.6). */
import type { Request } from 'express'
import { ApiError } from '../../http/errors.ts'

/** Every format with its media type. */
export const FORMATS = {
  json: {
    mediaType: 'application/json',
    contentType: 'application/json; charset=utf-8',
    isCompressed: false,
  },
  csv: {
    mediaType: 'text/csv',
    contentType: 'text/csv; charset=utf-8; header=present',
    isCompressed: false,
  },
  parquet: {
    mediaType: 'application/vnd.apache.parquet',
    contentType: 'application/vnd.apache.parquet',
    isCompressed: true,
  },
  arrow: {
    mediaType: 'application/vnd.apache.arrow.stream',
    contentType: 'application/vnd.apache.arrow.stream',
    isCompressed: false,
  },
} as const

export type Format = keyof typeof FORMATS

export const FORMAT_NAMES = ['json', 'csv', 'parquet', 'arrow'] as const satisfies readonly Format[]

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
