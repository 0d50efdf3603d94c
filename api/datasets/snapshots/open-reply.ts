/** Replies about snapshots, which need no key and change with the next run. */
import { createHash } from 'node:crypto'
import type { Request } from 'express'
import type { Reply } from '../../http/call.ts'
import { isNotModified } from '../../http/protocol/conditional.ts'
import { encode, encodedTag, encodingHeader, preferredEncoding } from '../../http/protocol/encodings.ts'
import { sendBody } from '../../http/respond.ts'

export const SOON_STALE = 'public, max-age=60, must-revalidate'
export const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends a body in the client's preferred coding, or a 304. */
export async function sendOpen(request: Request, reply: Reply, type: string, text: string): Promise<void> {
  const encoding = preferredEncoding(request)
  const etag = encodedTag(createHash('sha256').update(text).digest('hex'), encoding)
  reply.set({ ETag: etag, 'Cache-Control': SOON_STALE, Vary: 'Accept-Encoding' })
  if (isNotModified(request.headers, { etag })) return void reply.status(304).end()
  sendBody(reply.set(encodingHeader(encoding)), 200, type, await encode(Buffer.from(text), encoding))
}
