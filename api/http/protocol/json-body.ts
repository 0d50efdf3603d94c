import type { Request } from 'express'
import type { Reply } from '../call.ts'
import { ApiError } from '../errors.ts'
import { exceededBound } from '../../untrusted/json-bounds.ts'
import { shorten } from '../../untrusted/shorten.ts'
import { readBody } from './request-body.ts'

/** Reads the JSON body of a request; called by its handler. */
export type JsonReader = (request: Request, reply: Reply) => Promise<unknown>

/** Thousands of levels can be parsed, but not serialized. */
const LEVELS_AT_MOST = 500

/** Values in a body: each takes a hundred times the memory of its bytes, and parsing blocks. */
const VALUES_AT_MOST = 250_000

const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]+)/i

/**
 * A reader of bodies of at most `limit` decoded bytes. It rejects with 400 for a body that is invalid, damaged, nested
 * too deeply or missing, 413 for one with too many bytes or values, 415 for an unsupported coding or charset.
 */
export function jsonReader(limit: number): JsonReader {
  return async (request, reply) => {
    if (typeof request.is('application/json') !== 'string') {
      throw new ApiError(400, 'No JSON body: send one, with the header "Content-Type: application/json"')
    }
    refuseCharset(request.get('Content-Type') ?? '')
    const bytes = await readBody(request, reply, limit)
    if (bytes.length === 0) throw new ApiError(400, 'The body is empty: send JSON')
    const text = new TextDecoder().decode(bytes)
    refuseExcess(text)
    if (LONG_NUMBER.test(text)) longNumbers.set(request, text)
    request.body = parse(text)
    return request.body
  }
}

function refuseCharset(contentType: string): void {
  const charset = CHARSET.exec(contentType)?.[1]
  if (charset === undefined || /^utf-?8$/i.test(charset)) return
  throw new ApiError(
    415,
    `The body has an unsupported charset "${shorten(charset.toUpperCase())}"; allowed: utf-8`,
  )
}

function refuseExcess(text: string): void {
  const exceeded = exceededBound(text, { depth: LEVELS_AT_MOST, elements: VALUES_AT_MOST })
  if (exceeded === 'depth') {
    throw new ApiError(
      400,
      `The body is nested too deeply: at most ${LEVELS_AT_MOST} lists and objects are allowed`,
    )
  }
  if (exceeded === 'elements') {
    throw new ApiError(413, `The body has too many values: at most ${VALUES_AT_MOST} are allowed`)
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ApiError(400, `The body is not valid JSON: ${error instanceof Error ? error.message : ''}`)
  }
}

/** The text of bodies with whole numbers beyond the precision of a number. */
const longNumbers = new WeakMap<Request, string>()
const LONG_NUMBER = /\d{16}/

/** The parsed body for passing on: whole numbers beyond 2^53 are serialized unchanged. */
export function unroundedBody(request: Request): unknown {
  const text = longNumbers.get(request)
  return text === undefined ? request.body : JSON.parse(text, unrounded)
}

function unrounded(_key: string, value: unknown, context?: { readonly source: string }): unknown {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && context !== undefined ? JSON.rawJSON(context.source) : value
}
