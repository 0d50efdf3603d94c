/** Scripts of any page may read the API (CONTRACT 4.6): keys are sent explicitly, cookies are not used. */
import { BASE_PATH } from '../paths.ts'
import type { Headers, Reply } from './call.ts'

/** Response headers that a script may read, including the ones that browsers always allow. */
const EXPOSED = [
  'Accept-Ranges',
  'Allow',
  'Content-Disposition',
  'Content-Range',
  'ETag',
  'Last-Modified',
  'Link',
  'Location',
  'RateLimit',
  'RateLimit-Policy',
  'Repr-Digest',
  'Retry-After',
  'Vary',
  'WWW-Authenticate',
  'X-App-Id',
  'X-Request-Id',
  'X-Total-Count',
].join(', ')

/** Clients send their own headers, such as the SDKs the app's name. `*` does not include Authorization. */
const ALLOWED = 'Accept, Authorization, If-Modified-Since, If-None-Match, If-Range, Range, *'
const PREFLIGHT_SECONDS = 86_400

/** Lets pages of every origin read the reply. */
export const CORS_HEADERS: Headers = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': EXPOSED,
}

/** Whether the path is below the base path, existing or not. */
export function isApiPath(path: string): boolean {
  return path === BASE_PATH || path.startsWith(`${BASE_PATH}/`)
}

/** Answers the preflight request of a browser. */
export function sendPreflight(reply: Reply, methods: string): void {
  reply.status(204).set({
    ...CORS_HEADERS,
    Allow: methods,
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': ALLOWED,
    'Access-Control-Max-Age': String(PREFLIGHT_SECONDS),
  })
  reply.end()
}
