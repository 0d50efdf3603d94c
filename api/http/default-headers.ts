import type { Headers } from './call.ts'

/** Headers for browsers and caches, unless a handler sets others. */
export const DEFAULT_HEADERS: Headers = {
  // Errors and current states must not be cached; cacheable replies set their own value.
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
