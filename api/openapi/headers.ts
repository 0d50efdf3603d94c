/** Response headers. */

import { POLICIES } from '../accounts/policies.ts'

const text = (description: string) => ({ description, schema: { type: 'string' as const } })

export const HEADERS = {
  'Accept-Ranges': text('`bytes`: a file can be read in ranges.'),
  'Cache-Control': text('How long the reply may be cached, and by which caches.'),
  'Content-Disposition': text('File name of the reply; JSON has none.'),
  'Content-Range': text('The range of bytes in the reply, and the size of the whole.'),
  ETag: text('Strong entity tag of snapshot, query and format.'),
  'Last-Modified': text('The `as_of` of the snapshot.'),
  Link: text('RFC 8288 links: pages (pinned to the snapshot), licence, metadata, citation, newest snapshot.'),
  Location: text('The address to continue at.'),
  RateLimit: text('The rest of each limit (`r`) and the seconds until it resets (`t`).'),
  'RateLimit-Policy': text(
    `The limits: ${POLICIES.map(({ limit, sentence }) => `${limit} requests ${sentence}`).join(', ')}.`,
  ),
  'Repr-Digest': text('SHA-256 of the whole file (RFC 9530).'),
  'Retry-After': text('Seconds to wait before another attempt.'),
  Vary: text('The request headers that the reply depends on.'),
  'WWW-Authenticate': text('`Bearer`.'),
  'X-App-Id': text('The app that the request was counted for; 0 if it named none.'),
  'X-Total-Count': text('The total of the list, in the unit of `limit` and `offset`.'),
  'X-Request-Id': text('Identifier of the request, as in the log.'),
} as const

export type HeaderName = keyof typeof HEADERS
