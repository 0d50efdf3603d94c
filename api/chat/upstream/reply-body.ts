/** Reads the bodies of replies: decodes them, limits their size, and classifies their failures. */
import { Duplex, pipeline, type Readable } from 'node:stream'
import {
  createBrotliDecompress,
  createGunzip,
  createInflateRaw,
  createUnzip,
  createZstdDecompress,
} from 'node:zlib'
import { codeOf } from '../../process/system-errors.ts'
import { AttemptFailure } from '../routing/failure.ts'

/** Maximum bytes of a whole completion. */
export const REPLY_BYTES = 64 * 1024 * 1024

const DECODERS: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflateOfEither,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** The decoded body (RFC 9110, 8.4): some proxies add codings without a request. */
export function decoded(body: Readable, header: string | string[] | undefined): Readable {
  const codings = String(header ?? '')
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity')
  return codings.reduceRight<Readable>((packed, coding) => {
    const decoder = DECODERS[coding]?.()
    // The resulting stream reports a broken body.
    if (decoder !== undefined) return pipeline(packed, decoder, () => undefined)
    packed.destroy(new AttemptFailure('invalidReply', { code: 'unknown_content_encoding' }))
    return packed
  }, body)
}

// RFC 9110, 8.4.1.2 defines the zlib format, but some servers send bare deflate: the first byte shows which.
function createInflateOfEither(): Duplex {
  return Duplex.from(async function* (packed: AsyncIterable<Buffer>) {
    const parts = packed[Symbol.asyncIterator]()
    const first = await parts.next()
    if (first.done === true) return
    const inflate = isBareDeflate(first.value) ? createInflateRaw() : createUnzip()
    yield* pipeline(following(first.value, parts), inflate, () => undefined)
  })
}

async function* following(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first
  yield* { [Symbol.asyncIterator]: () => rest }
}

/** Neither the head of zlib with method 8 (RFC 1950, 2.2) nor of gzip (RFC 1952, 2.3.1). */
function isBareDeflate([first = 0]: Buffer): boolean {
  return (first & 0x0f) !== 8 && first !== 0x1f
}

/** The failure behind an error of the connection: the expired deadline, if there is one. */
export function asFailure(error: unknown, signal: AbortSignal): AttemptFailure {
  if (error instanceof AttemptFailure) return error
  if (signal.reason instanceof AttemptFailure) return signal.reason
  return new AttemptFailure('connection', { cause: error, code: codeOf(error) })
}

/** The same once the reply has begun: a broken connection cuts the reply. */
export function asCut(error: unknown, signal: AbortSignal): AttemptFailure {
  const failure = asFailure(error, signal)
  return failure.kind === 'connection' ? new AttemptFailure('cut', { cause: error }) : failure
}

/**
 * The whole body as text.
 * @throws {AttemptFailure} if it breaks off, or exceeds `limit` bytes.
 */
export async function readText(body: Readable, limit: number, signal: AbortSignal): Promise<string> {
  try {
    const parts = await readParts(body, limit)
    // A TextDecoder drops the byte order mark that some servers send; Buffer.toString does not.
    return new TextDecoder().decode(Buffer.concat(parts))
  } catch (error) {
    throw asCut(error, signal)
  }
}

// By events, since an iterator awaits a promise for each part.
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
