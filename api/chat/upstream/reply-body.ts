/** The bodies of replies: unpacked, read under a limit, and their failures told apart. */
import { pipeline, type Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createUnzip, createZstdDecompress } from 'node:zlib'
import { codeOf } from '../../process/system-errors.ts'
import { AttemptFailure } from '../routing/failure.ts'

/** Bytes of a whole completion. */
export const REPLY_BYTES = 64 * 1024 * 1024

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createUnzip,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** The body without its codings (RFC 9110, 8.4), which some proxies add though none was asked for. */
export function decoded(body: Readable, header: string | string[] | undefined): Readable {
  const codings = String(header ?? '')
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity')
  return codings.reduceRight<Readable>((packed, coding) => {
    const decoder = DECODERS[coding]?.()
    // A broken body is an error of the stream that comes out, where it is read.
    if (decoder !== undefined) return pipeline(packed, decoder, () => undefined)
    packed.destroy(new AttemptFailure('invalidReply', { code: 'unknown_content_encoding' }))
    return packed
  }, body)
}

/** The failure behind an error of the connection: the deadline that ended it, where one did. */
export function asFailure(error: unknown, signal: AbortSignal): AttemptFailure {
  if (error instanceof AttemptFailure) return error
  if (signal.reason instanceof AttemptFailure) return signal.reason
  return new AttemptFailure('connection', { cause: error, code: codeOf(error) })
}

/** The same once the reply has begun: a connection that breaks cuts the reply. */
export function asCut(error: unknown, signal: AbortSignal): AttemptFailure {
  const failure = asFailure(error, signal)
  return failure.kind === 'connection' ? new AttemptFailure('cut', { cause: error }) : failure
}

/**
 * The whole body as text.
 * @throws {AttemptFailure} when it breaks off, or has more than `limit` bytes.
 */
export async function readText(body: Readable, limit: number, signal: AbortSignal): Promise<string> {
  try {
    const parts = await readParts(body, limit)
    // Unlike a buffer's own text, without the byte order mark that some servers put before it.
    return new TextDecoder().decode(Buffer.concat(parts))
  } catch (error) {
    throw asCut(error, signal)
  }
}

// By its events: an iterator would wait for a promise at each part.
async function readParts(body: Readable, limit: number): Promise<readonly Buffer[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Buffer[]>()
  const parts: Buffer[] = []
  let bytes = 0
  body.on('data', (part: Buffer) => {
    bytes += part.length
    if (bytes <= limit) parts.push(part)
    else body.destroy(new AttemptFailure('invalidReply', { code: 'reply_too_large' }))
  })
  body.once('end', () => resolve(parts))
  body.once('error', reject)
  return await promise
}
