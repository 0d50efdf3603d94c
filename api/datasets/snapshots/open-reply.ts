/** Replies about snapshots, which need no key and change with the next run. */
import { createHash } from 'node:crypto'
import type { Request } from 'express'
import type { Reply } from '../../http/call.ts'
import { isNotModified } from '../../http/protocol/conditional.ts'
import { encodingHeader, type Encoding } from '../../http/protocol/encodings.ts'
import { sendBody } from '../../http/respond.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

/** The alias of the newest snapshot in file addresses, for scripts that download them each night. */
export const LATEST = 'latest'

export const SOON_STALE = 'public, max-age=60, must-revalidate'

interface OpenReply {
  readonly etag: string
  readonly body: Buffer
  readonly encoding?: Encoding
  readonly type?: string
}

/** Sends a body, JSON unless `type` is another media type, or a 304. */
export function sendOpen(
  request: Request,
  reply: Reply,
  { etag, body, encoding = 'identity', type = JSON_TYPE }: OpenReply,
): void {
  reply.set({ ETag: etag, 'Cache-Control': SOON_STALE })
  if (isNotModified(request.headers, { etag })) reply.status(304).end()
  else sendBody(reply.set(encodingHeader(encoding)), 200, type, body)
}

export function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
