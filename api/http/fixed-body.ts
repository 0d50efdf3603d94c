import type { Handler } from '../call.ts'
import { sendBody } from '../respond.ts'
import { encode, preferredEncoding, type Encoding } from './encodings.ts'

/** Answers with a body that stays the same as long as the process runs; each coding of it is made once. */
export function fixedBody(contentType: string, text: Buffer | string): Handler {
  const body = Buffer.from(text)
  const made = new Map<Encoding, Promise<Buffer>>()
  return async (request, reply) => {
    const encoding = preferredEncoding(request)
    const encoded = made.get(encoding) ?? encode(body, encoding)
    made.set(encoding, encoded)
    reply.vary('Accept-Encoding')
    if (encoding !== 'identity') reply.set('Content-Encoding', encoding)
    sendBody(reply, 200, contentType, await encoded)
  }
}
