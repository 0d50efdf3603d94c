/** Content codings of replies (RFC 9110, 8.4): negotiation and compression. */
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Request } from 'express'

/** Content codings, by preference. */
export const ENCODINGS = ['br', 'gzip', 'identity'] as const
export type Encoding = (typeof ENCODINGS)[number]

/** The client's preferred coding (RFC 9110, 12.5.3); identity if it names none. */
export function preferredEncoding(request: Request): Encoding {
  const accepted = request.acceptsEncodings(...ENCODINGS)
  return ENCODINGS.find((encoding) => encoding === accepted) ?? 'identity'
}

/** The Content-Encoding header; empty for identity. */
export function encodingHeader(encoding: Encoding): Readonly<Record<string, string>> {
  return encoding === 'identity' ? {} : { 'Content-Encoding': encoding }
}

/** The entity tag of a body in this coding: each coding is a representation of its own, with its own tag. */
export function encodedTag(name: string, encoding: Encoding): string {
  return encoding === 'identity' ? `"${name}"` : `"${name}.${encoding}"`
}

// Most bodies are compressed once and sent many times, so more work than usual pays.
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }

/** Compresses a body off the event loop. */
export async function encode(body: Buffer, encoding: Encoding): Promise<Buffer> {
  if (encoding === 'identity') return body
  return encoding === 'br'
    ? await promisify(brotliCompress)(body, BROTLI)
    : await promisify<Buffer, Buffer>(gzip)(body)
}
