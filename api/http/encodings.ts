/** Content codings of replies (RFC 9110, 8.4): negotiation, compression, and caches of compressed bodies. */
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Request } from 'express'
import { LRUCache } from 'lru-cache'
import { sendBody, type Handler, type Headers } from './call.ts'

/** Content codings, by preference. */
export const ENCODINGS = ['br', 'gzip', 'identity'] as const
export type Encoding = (typeof ENCODINGS)[number]

/** The client's preferred coding (RFC 9110, 12.5.3); identity if it names none. */
export function preferredEncoding(request: Request): Encoding {
  const accepted = request.acceptsEncodings(...ENCODINGS)
  return ENCODINGS.find((encoding) => encoding === accepted) ?? 'identity'
}

/** The Content-Encoding header; empty for identity. */
export function encodingHeader(encoding: Encoding): Headers {
  return encoding === 'identity' ? {} : { 'Content-Encoding': encoding }
}

/** The entity tag of a body in this coding: each coding is a representation of its own, with its own tag. */
export function encodedTag(name: string, encoding: Encoding): string {
  return encoding === 'identity' ? `"${name}"` : `"${name}.${encoding}"`
}

/** Bodies are compressed once and sent many times; a higher quality makes the first client wait for seconds. */
const BROTLI_QUALITY = 6

/** Compresses a body off the event loop. */
export async function encode(body: Buffer, encoding: Encoding): Promise<Buffer> {
  if (encoding === 'identity') return body
  return encoding === 'br'
    ? await promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } })
    : await promisify<Buffer, Buffer>(gzip)(body)
}

/**
 * Answers with a body that never changes while the process runs; each coding is compressed once.
 * @param headers of the reply, without type, length and coding.
 */
export function fixedBody(contentType: string, text: Buffer | string, headers: Headers = {}): Handler {
  const body = Buffer.from(text)
  const made = new Map<Encoding, Promise<Buffer>>()
  return async (request, reply) => {
    const encoding = preferredEncoding(request)
    const encoded = made.getOrInsertComputed(encoding, () => encode(body, encoding))
    reply.set({ ...headers, Vary: 'Accept-Encoding', ...encodingHeader(encoding) })
    sendBody(reply, 200, contentType, await encoded)
  }
}

/** Bytes of an entry beside its body. */
const OVERHEAD_BYTES = 500

/** The caller whose `make` ran has disconnected. */
class CallerGone extends Error {}

/**
 * An LRU cache for at most `maxBytes` of bodies. Its function returns the cached value of `key` with its body in this coding,
 * or what `make` returns, which runs once for concurrent callers, whatever their coding. Failures are not cached. `signal`
 * ends this caller's `make`; if it was another caller's that ended, this one's runs.
 */
export function createBodyCache<Value extends { readonly body: Buffer }>(maxBytes: number) {
  const cache = new LRUCache<string, Value, () => Promise<Value>>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length + OVERHEAD_BYTES,
    fetchMethod: (_key, _stale, { context: make }) => make(),
    // Waiting callers get the value even if it is evicted meanwhile.
    ignoreFetchAbort: true,
  })

  return async function get(
    key: string,
    encoding: Encoding,
    make: () => Promise<Value>,
    signal?: AbortSignal,
  ): Promise<Value> {
    const makeCoded = async () => {
      const plain = await get(key, 'identity', make, signal)
      return { ...plain, body: await encode(plain.body, encoding) }
    }
    const context = () =>
      (encoding === 'identity' ? make() : makeCoded()).catch((error: unknown) => {
        throw signal?.aborted === true ? new CallerGone('gone', { cause: error }) : error
      })
    for (;;) {
      try {
        return await cache.forceFetch(`${encoding} ${key}`, { context })
      } catch (error) {
        if (!(error instanceof CallerGone)) throw error
        signal?.throwIfAborted()
      }
    }
  }
}
