/** Reads the JSON bodies of requests, under limits that apply while they arrive. */
import type { Readable, Transform } from 'node:stream'
import { createBrotliDecompress, createUnzip, createZstdDecompress } from 'node:zlib'
import type { Request } from 'express'
import { messageOf } from '../process/system-errors.ts'
import { exceededBound, shorten } from '../untrusted/json.ts'
import type { Reply } from './call.ts'
import { ApiError, busy } from './errors.ts'

/** A body as parsed, and for passing on: there, whole numbers beyond 2^53 are serialized with all their digits. */
export type JsonBody = { readonly body: unknown; readonly passedOn: unknown }

/** Thousands of levels can be parsed, but not serialized. */
const LEVELS_AT_MOST = 500

/** Values in a body: each takes a hundred times the memory of its bytes, and parsing blocks. */
const VALUES_AT_MOST = 250_000

const LONG_NUMBER = /\d{16}/

/**
 * A reader of bodies of at most `limit` decoded bytes. It rejects with 400 for a body that is invalid, damaged, nested
 * too deeply or missing, 413 for one with too many bytes or values, as soon as possible, 415 for an unsupported coding,
 * 503 if the bodies in flight are too large together. Its Content-Type does not count: many scripts name none, or that of
 * a form, and JSON is UTF-8 whatever its charset (RFC 8259, 11).
 */
export function jsonReader(limit: number): (request: Request, reply: Reply) => Promise<JsonBody> {
  const bytesAtMost = Math.min(limit, IN_FLIGHT_AT_MOST)
  return async (request, reply) => {
    const text = await readBody(request, reply, bytesAtMost)
    if (text === '') throw new ApiError(400, 'The body is empty: send JSON')
    const exceeded = exceededBound(text, { depth: LEVELS_AT_MOST, elements: VALUES_AT_MOST })
    if (exceeded === 'depth')
      throw new ApiError(400, `The body is nested too deeply: at most ${LEVELS_AT_MOST} levels are allowed`)
    if (exceeded === 'elements')
      throw new ApiError(413, `The body has too many values: at most ${VALUES_AT_MOST} are allowed`)
    try {
      const body: unknown = JSON.parse(text)
      return { body, passedOn: LONG_NUMBER.test(text) ? JSON.parse(text, keepDigits) : body }
    } catch (error) {
      throw new ApiError(400, `The body is not valid JSON: ${messageOf(error)}`)
    }
  }
}

function keepDigits(_key: string, value: unknown, context?: { readonly source: string }): unknown {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && context !== undefined ? JSON.rawJSON(context.source) : value
}

/** How bodies are decoded, by content coding in lower case (RFC 9110, 8.4). */
export const DECODERS = new Map<string, () => Transform | undefined>([
  ['br', createBrotliDecompress],
  ['deflate', createUnzip],
  ['gzip', createUnzip],
  ['x-gzip', createUnzip],
  ['zstd', createZstdDecompress],
  ['identity', () => undefined],
])

async function readBody(request: Request, reply: Reply, limit: number): Promise<string> {
  const { 'content-length': length = '0', 'content-encoding': coding = 'identity' } = request.headers
  const createDecoder = DECODERS.get(coding.toLowerCase())
  if (createDecoder === undefined)
    throw new ApiError(
      415,
      `The body has an unsupported content encoding "${shorten(coding)}"; allowed: br, deflate, gzip, zstd, or none`,
    )
  if (Number(length) > limit) throw tooLarge(limit)
  // Its reply was closed while the key was looked up: nothing would give back what it holds.
  if (reply.closed) throw new ApiError(400, 'The client disconnected before its body was read')
  const hold = holdBytes(reply)
  hold(Number(length))
  // Only here: a body that is refused is not asked for. HTTP/1.0 knows no 100 (RFC 9110, 10.1.1).
  if (request.headers.expect !== undefined && request.httpVersion !== '1.0') reply.writeContinue()
  const decoder = createDecoder()
  if (decoder !== undefined) reply.once('close', () => decoder.destroy())
  try {
    return await collect(decoder === undefined ? request : request.pipe(decoder), limit, hold)
  } catch (error) {
    // The rest is discarded: many clients read a reply only once they have sent everything.
    request.unpipe().resume()
    if (error instanceof ApiError) throw error
    const message = 'The body is incomplete, not in the coding that its headers name, or not in UTF-8'
    throw new ApiError(400, `${message}: ${messageOf(error)}`)
  }
}

/** The text of a body. Its buffer is given back at once: as garbage, a few large ones would fill a small container. */
async function collect(body: Readable, limit: number, hold: (bytes: number) => void): Promise<string> {
  let buffer = new ArrayBuffer(0)
  let bytes = 0
  for await (const part of body.iterator({ destroyOnReturn: false })) {
    const end = bytes + part.length
    if (end > limit) throw tooLarge(limit)
    hold(end)
    if (end > buffer.byteLength) buffer = buffer.transfer(Math.min(2 * end, limit))
    new Uint8Array(buffer).set(part, bytes)
    bytes = end
  }
  const text = new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(buffer, 0, bytes))
  buffer.transfer(0)
  return text
}

const MIB = 1024 * 1024

/**
 * Bytes of the bodies of requests that are not yet answered, by key, and their bounds: for all and for each key. While it is
 * read, a body takes up to seven times its bytes, so that a small container has room for fewer.
 */
const inFlight = new Map<string, number>()
const IN_FLIGHT_AT_MOST = Math.min(128 * MIB, Math.trunc(process.constrainedMemory() / 9) || Infinity)
/** Also the most that one body may have, in MiB. */
export const KEY_BODIES_MIB = 64

/**
 * Returns a function that holds at least so many bytes for a request until its reply is closed.
 * @throws ApiError 503 if the bodies in flight would exceed a bound.
 */
function holdBytes(reply: Reply): (bytes: number) => void {
  const key = reply.locals.caller?.id ?? ''
  let held = 0
  const add = (more: number) => {
    held += more
    inFlight.set(key, (inFlight.get(key) ?? 0) + more)
    if (inFlight.get(key) === 0) inFlight.delete(key)
  }
  reply.once('close', () => add(-held))
  return (bytes) => {
    const more = Math.max(0, bytes - held)
    const [ofKey, ofAll] = [inFlight.get(key) ?? 0, inFlight.values().reduce((sum, each) => sum + each, 0)]
    if (ofAll + more <= IN_FLIGHT_AT_MOST && ofKey + more <= KEY_BODIES_MIB * MIB) return add(more)
    throw busy('The bodies of requests in progress are too large together', 5)
  }
}

function tooLarge(limit: number): ApiError {
  return new ApiError(413, `The body is too large: at most ${limit} bytes are allowed`)
}
