/** Reads the decoded bytes of a request body, under limits that apply while it arrives. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { shorten } from '../../untrusted/shorten.ts'
import { ApiError } from '../errors.ts'

const DECODERS: Readonly<Record<string, () => Duplex>> = {
  br: createBrotliDecompress,
  deflate: createInflate,
  gzip: createGunzip,
  zstd: createZstdDecompress,
}

/** Maximum compression ratio of a large body: text compresses ten times, hardly a hundred times. */
const RATIO_AT_MOST = 100
const LARGE_BYTES = 1024 * 1024

/**
 * Reads a body of at most `limit` bytes.
 * @throws {ApiError} 400 for a damaged or incomplete body, 413 for one that is too large or expands too much, as soon
 * as possible, 415 for an unsupported coding.
 */
export async function readBody(
  request: IncomingMessage,
  reply: ServerResponse,
  limit: number,
): Promise<Buffer> {
  const decode = decoderOf(request)
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
  if (/^100-continue$/i.test(request.headers.expect ?? '')) reply.writeContinue()
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let packed = 0
  request.on('data', (chunk: Buffer) => {
    packed += chunk.length
    if (packed > limit) reject(tooLarge(limit))
  })
  const parts: Buffer[] = []
  let unpacked = 0
  const source: Readable = decode === undefined ? request : request.pipe(decode())
  source.on('data', (part: Buffer) => {
    parts.push(part)
    unpacked += part.length
    if (unpacked > limit) reject(tooLarge(limit))
    if (unpacked > LARGE_BYTES && unpacked > RATIO_AT_MOST * packed) reject(unpacksToTooMuch())
  })
  source.on('end', () => resolve(Buffer.concat(parts)))
  source.on('error', (error) => reject(damaged(error)))
  const refuseLeft = () => {
    if (!request.readableEnded) reject(new ApiError(400, 'The body is incomplete: the client has left'))
  }
  request.on('close', refuseLeft)
  // A client may leave before its body is read, and then no further event follows.
  if (request.destroyed) refuseLeft()
  try {
    return await promise
  } finally {
    // The rest is not read.
    request.removeAllListeners('data').pause()
    if (source !== request) source.removeAllListeners('data').destroy()
  }
}

function decoderOf({ headers }: IncomingMessage): (() => Duplex) | undefined {
  const coding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  if (coding === 'identity') return undefined
  const decoder = Object.hasOwn(DECODERS, coding) ? DECODERS[coding] : undefined
  if (decoder !== undefined) return decoder
  const allowed = Object.keys(DECODERS).join(', ')
  throw new ApiError(
    415,
    `The body has an unsupported content encoding "${shorten(coding)}"; allowed: ${allowed}, or none`,
  )
}

function tooLarge(limit: number): ApiError {
  return new ApiError(413, `The body is too large: at most ${limit} bytes are allowed`)
}

function unpacksToTooMuch(): ApiError {
  return new ApiError(
    413,
    `The body unpacks to more than ${RATIO_AT_MOST} times its size: send it uncompressed`,
  )
}

function damaged(error: Error): ApiError {
  return new ApiError(400, `The body is not in the coding that its Content-Encoding names: ${error.message}`)
}
