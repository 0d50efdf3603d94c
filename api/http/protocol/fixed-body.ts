import type { Handler } from '../call.ts'
import { sendBody } from '../respond.ts'
import { encode, encodingHeader, preferredEncoding, type Encoding } from './encodings.ts'

/**
 * Answers with a body that never changes while the process runs; each coding is compressed once.
 * @param headers of the reply, without type, length and coding.
 */
export function fixedBody(
  contentType: string,
  text: Buffer | string,
  headers: Readonly<Record<string, string>>,
): Handler {
  const body = Buffer.from(text)
  const made = new Map<Encoding, Promise<Buffer>>()
  return async (request, reply) => {
    const encoding = preferredEncoding(request)
    const encoded = made.get(encoding) ?? encode(body, encoding)
    made.set(encoding, encoded)
    reply.set({ ...headers, Vary: 'Accept-Encoding', ...encodingHeader(encoding) })
    sendBody(reply, 200, contentType, await encoded)
  }
}
