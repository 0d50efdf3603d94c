/** Codings of replies (RFC 9110, 8.4): which one a client prefers, and how it is made. */
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Request } from 'express'

/** Codings of a reply, by preference. */
export const ENCODINGS = ['br', 'gzip', 'identity'] as const
export type Encoding = (typeof ENCODINGS)[number]

/** The coding a client prefers (RFC 9110, 12.5.3); as it is, where it names none. */
export function preferredEncoding(request: Request): Encoding {
  const accepted = request.acceptsEncodings(...ENCODINGS)
  return ENCODINGS.find((encoding) => encoding === accepted) ?? 'identity'
}

/** The header that tells the coding; none where there is none. */
export function encodingHeader(encoding: Encoding): Readonly<Record<string, string>> {
  return encoding === 'identity' ? {} : { 'Content-Encoding': encoding }
}

/** The entity tag of a body in this coding: each coding is a representation of its own, so it has a tag of its own. */
export function encodedTag(name: string, encoding: Encoding): string {
  return encoding === 'identity' ? `"${name}"` : `"${name}.${encoding}"`
}

// Most bodies are compressed once and sent many times, so a little more work than usual pays.
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }

/** The body in this coding, made beside the event loop. */
export async function encode(body: Buffer, encoding: Encoding): Promise<Buffer> {
  if (encoding === 'identity') return body
  return encoding === 'br'
    ? await promisify(brotliCompress)(body, BROTLI)
    : await promisify<Buffer, Buffer>(gzip)(body)
}
