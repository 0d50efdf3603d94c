/** Reads the JSON bodies of requests with Express's parser, under limits that apply while they arrive. */
import express, { type Request } from 'express'
import { exceededBound } from '../untrusted/json.ts'
import { shorten } from '../untrusted/shorten.ts'
import type { Reply } from './call.ts'
import { ApiError } from './errors.ts'

/** Reads the JSON body of a request; called by its handler. */
export type JsonReader = (request: Request, reply: Reply) => Promise<unknown>

/** Thousands of levels can be parsed, but not serialized. */
const LEVELS_AT_MOST = 500

/** Values in a body: each takes a hundred times the memory of its bytes, and parsing blocks. */
const VALUES_AT_MOST = 250_000

const MIB = 1024 * 1024

/** Bytes of all bodies in flight together, and of those of one key. */
const ALL_BYTES = 128 * MIB
const KEY_BYTES = 64 * MIB
const RETRY_AFTER_SECONDS = 5

const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]+)/i

/**
 * A reader of bodies of at most `limit` decoded bytes. It rejects with 400 for a body that is invalid, damaged, nested
 * too deeply or missing, 413 for one with too many bytes or values, as soon as possible, 415 for an unsupported coding or
 * charset, 503 if the bodies in flight are too large together.
 */
export function jsonReader(limit: number): JsonReader {
  return async (request, reply) => {
    if (typeof request.is('application/json') !== 'string') {
      throw new ApiError(400, 'No JSON body: send one, with the header "Content-Type: application/json"')
    }
    const charset = CHARSET.exec(request.get('Content-Type') ?? '')?.[1] ?? 'utf-8'
    if (!/^utf-?8$/i.test(charset)) {
      throw new ApiError(
        415,
        `The body has an unsupported charset "${shorten(charset.toUpperCase())}"; allowed: utf-8`,
      )
    }
    const bytes = await readBody(request, reply, limit)
    if (bytes.length === 0) throw new ApiError(400, 'The body is empty: send JSON')
    const text = new TextDecoder().decode(bytes)
    refuseExcess(text)
    if (LONG_NUMBER.test(text)) longNumbers.set(request, text)
    try {
      request.body = JSON.parse(text)
    } catch (error) {
      throw new ApiError(400, `The body is not valid JSON: ${error instanceof Error ? error.message : ''}`)
    }
    return request.body
  }
}

function refuseExcess(text: string): void {
  const exceeded = exceededBound(text, { depth: LEVELS_AT_MOST, elements: VALUES_AT_MOST })
  if (exceeded === 'depth')
    throw new ApiError(400, `The body is nested too deeply: at most ${LEVELS_AT_MOST} levels are allowed`)
  if (exceeded === 'elements')
    throw new ApiError(413, `The body has too many values: at most ${VALUES_AT_MOST} are allowed`)
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

async function readBody(request: Request, reply: Reply, limit: number): Promise<Buffer> {
  const { 'content-length': length, 'content-encoding': coding = 'identity', expect = '' } = request.headers
  if (Number(length ?? 0) > limit) throw tooLarge(limit)
  // Its reply was closed while the key was looked up: nothing would give back what it holds.
  if (reply.closed) throw new ApiError(400, 'The client disconnected before its body was read')
  const hold = holdBytes(reply)
  const isCoded = coding.toLowerCase() !== 'identity'
  // Unpacked, a body may be as large as the limit. One of unknown length is counted as it arrives.
  await hold(isCoded ? limit : Number(length ?? 0))
  if (/^100-continue$/i.test(expect)) reply.writeContinue()
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let arrived = 0
  // The parser rejects only once it has read everything.
  request.on('data', ({ length: bytes }: Buffer) => {
    arrived += bytes
    if (arrived > limit) reject(tooLarge(limit))
    else if (length === undefined && !isCoded) hold(bytes).catch(reject)
  })
  express.raw({ type: () => true, limit })(request, reply, (error?: unknown) => {
    if (error !== undefined) reject(refusalOf(error, coding, limit))
    else resolve(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0))
  })
  try {
    return await promise
  } catch (error) {
    // The rest is discarded: many clients read a reply only once they have sent everything.
    request.removeAllListeners('data').resume()
    throw error
  }
}

/** Bytes of the bodies of requests that are not yet answered, by key. */
const inFlight = new Map<string, number>()

/** Returns a function that adds bytes to the ones in flight until the reply is closed; it rejects with 503 beyond a bound. */
function holdBytes(reply: Reply): (bytes: number) => Promise<void> {
  const key = reply.locals.caller?.keyId ?? ''
  let held = 0
  const add = (bytes: number) => {
    held += bytes
    const rest = (inFlight.get(key) ?? 0) + bytes
    if (rest > 0) inFlight.set(key, rest)
    else inFlight.delete(key)
  }
  reply.once('close', () => add(-held))
  return async (bytes) => {
    const all = inFlight.values().reduce((sum, each) => sum + each, bytes)
    if (all <= ALL_BYTES && (inFlight.get(key) ?? 0) + bytes <= KEY_BYTES) return add(bytes)
    throw new ApiError(
      503,
      `The bodies of requests in progress are too large together; try again in ${RETRY_AFTER_SECONDS} seconds`,
      { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } },
    )
  }
}

function refusalOf(error: unknown, coding: string, limit: number): ApiError {
  const status = error instanceof Error && 'status' in error ? error.status : undefined
  if (status === 413) return tooLarge(limit)
  if (status === 415) {
    const allowed = 'br, deflate, gzip, zstd, or none'
    return new ApiError(
      415,
      `The body has an unsupported content encoding "${shorten(coding)}"; allowed: ${allowed}`,
    )
  }
  const reason = error instanceof Error ? error.message : String(error)
  return new ApiError(400, `The body is incomplete, or not in the coding that its headers name: ${reason}`)
}

function tooLarge(limit: number): ApiError {
  return new ApiError(413, `The body is too large: at most ${limit} bytes are allowed`)
}
