/** Headers of replies, described once. */

import { POLICIES } from '../accounts/limits/policies.ts'

const text = (description: string) => ({ description, schema: { type: 'string' } })

export const HEADERS = {
  'Accept-Ranges': text('`bytes`: a file can be read in ranges.'),
  'Cache-Control': text('How long the reply may be kept, and by whom.'),
  'Content-Disposition': text('The name of the file that the reply is; JSON has none.'),
  'Content-Location': text('The address that gives the same bytes for as long as the snapshot is retained.'),
  'Content-Range': text('Which bytes of how many the reply holds.'),
  ETag: text('Strong entity tag of snapshot, query and format.'),
  'Last-Modified': text('The `as_of` of the snapshot.'),
  Link: text('RFC 8288 links: pages (pinned to the snapshot), licence, metadata, other formats.'),
  Location: text('Where to go on.'),
  RateLimit: text('What is left of each limit (`r`) and the seconds until it starts over (`t`).'),
  'RateLimit-Policy': text(
    `The limits: ${POLICIES.map(({ limit, sentence }) => `${limit} requests ${sentence}`).join(', ')}.`,
  ),
  'Repr-Digest': text('SHA-256 of the whole file (RFC 9530).'),
  'Retry-After': text('Seconds to wait before another attempt.'),
  Vary: text('The request headers that the choice of the reply depends on.'),
  'WWW-Authenticate': text('`Bearer`.'),
  'X-App-Id': text('The app that the request was counted for; 0 where it named none.'),
  'X-Total-Count': text('How much the pages of the list have together, counted as `limit` and `offset` are.'),
  'X-Request-Id': text('Identifier of the request, which the log knows too.'),
} as const

export type HeaderName = keyof typeof HEADERS
