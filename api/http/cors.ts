/** Open data may be read by scripts of any page (CONTRACT 4.6). */
import type { Handler, Headers } from './call.ts'

/** Headers of replies that a script may see, also those that browsers show it anyway. */
const EXPOSED = [
  'Accept-Ranges',
  'Content-Location',
  'Content-Range',
  'ETag',
  'Last-Modified',
  'Link',
  'RateLimit',
  'RateLimit-Policy',
  'Repr-Digest',
  'Retry-After',
  'Vary',
  'X-Request-Id',
].join(', ')

/** Clients send headers of their own, such as the SDKs the name of the app. `*` does not stand for Authorization. */
const ALLOWED = 'Accept, Authorization, If-Modified-Since, If-None-Match, If-Range, Range, *'
const PREFLIGHT_SECONDS = 86_400

/** Lets pages of every origin read the reply. */
export const OPEN_TO_PAGES: Headers = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': EXPOSED,
}

/** Answers the question a browser asks before it sends a request with such headers. */
export function preflight(methods: string): Handler {
  return (_request, reply) => {
    reply
      .status(204)
      .set({
        Allow: methods,
        'Access-Control-Allow-Methods': methods,
        'Access-Control-Allow-Headers': ALLOWED,
        'Access-Control-Max-Age': String(PREFLIGHT_SECONDS),
      })
      .end()
  }
}
