/** Reads request bodies with Express's parser, under limits that apply while they arrive. */
import express, { type Request } from 'express'
import { shorten } from '../../untrusted/shorten.ts'
import type { Reply } from '../call.ts'
import { ApiError } from '../errors.ts'

const MIB = 1024 * 1024

/** Bytes of all bodies in flight together, and of those of one key. */
const ALL_BYTES = 128 * MIB
const KEY_BYTES = 64 * MIB
const RETRY_AFTER_SECONDS = 5

/** Bytes of the bodies of requests that are not yet answered, by key. */
const inFlight = new Map<string, number>()

/**
 * Reads a body of at most `limit` decoded bytes.
 * @throws {ApiError} 400 for a damaged or incomplete body, 413 for one that is too large, as soon as possible, 415 for an
 * unsupported coding, 503 if the bodies in flight are too large together.
 */
export async function readBody(request: Request, reply: Reply, limit: number): Promise<Buffer> {
  const { 'content-length': length, 'content-encoding': coding = 'identity', expect = '' } = request.headers
  if (Number(length ?? 0) > limit) throw tooLarge(limit)
  const hold = holdBytes(reply)
  const isCoded = coding.toLowerCase() !== 'identity'
  // Unpacked, a body may be as large as the limit. One of unknown length is counted as it arrives.
  hold(isCoded ? limit : Number(length ?? 0))
  if (/^100-continue$/i.test(expect)) reply.writeContinue()
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let arrived = 0
  request.on('data', ({ length: bytes }: Buffer) => {
    arrived += bytes
    try {
      if (arrived > limit) throw tooLarge(limit)
      if (length === undefined && !isCoded) hold(bytes)
    } catch (error) {
      reject(error instanceof Error ? error : new Error(String(error)))
    }
  })
  express.raw({ type: () => true, limit })(request, reply, (error?: unknown) => {
    if (error !== undefined) reject(refusalOf(error, coding, limit))
    else resolve(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0))
  })
  try {
    return await promise
  } finally {
    // The rest is not read.
    request.pause()
  }
}

/** Returns a function that adds bytes to the ones in flight until the reply is closed. */
function holdBytes(reply: Reply): (bytes: number) => void {
  const key = reply.locals.caller?.keyId ?? ''
  let held = 0
  const add = (bytes: number) => {
    held += bytes
    const rest = (inFlight.get(key) ?? 0) + bytes
    if (rest > 0) inFlight.set(key, rest)
    else inFlight.delete(key)
  }
  reply.once('close', () => add(-held))
  return (bytes) => {
    const all = inFlight.values().reduce((sum, each) => sum + each, bytes)
    if (all > ALL_BYTES || (inFlight.get(key) ?? 0) + bytes > KEY_BYTES) throw tooManyBytes()
    add(bytes)
  }
}

function refusalOf(error: unknown, coding: string, limit: number): ApiError {
  const status = error instanceof Error && 'status' in error ? error.status : undefined
  if (status === 413) return tooLarge(limit)
  if (status === 415) {
    return new ApiError(
      415,
      `The body has an unsupported content encoding "${shorten(coding)}"; allowed: br, deflate, gzip, zstd, or none`,
    )
  }
  const reason = error instanceof Error ? error.message : String(error)
  return new ApiError(400, `The body is incomplete, or not in the coding that its headers name: ${reason}`)
}

function tooLarge(limit: number): ApiError {
  return new ApiError(413, `The body is too large: at most ${limit} bytes are allowed`)
}

function tooManyBytes(): ApiError {
  return new ApiError(
    503,
    `The bodies of requests in progress are too large together; try again in ${RETRY_AFTER_SECONDS} seconds`,
    { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } },
  )
}
