import type { Headers } from './call.ts'

/** What a reply tells browsers and caches unless its handler says otherwise. */
export const DEFAULT_HEADERS: Headers = {
  // Errors and states of the moment must not be cached; replies that may be say so themselves.
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none';frame-ancestors 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  // Open data may be read from any page.
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'Origin-Agent-Cluster': '?1',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'SAMEORIGIN',
}
