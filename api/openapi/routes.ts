/** GET /openapi.json and the reference page at /docs (CONTRACT 4.6). */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fixedBody } from '../http/encodings.ts'
import { jsonText } from '../http/call.ts'
import type { Route } from '../http/route.ts'
import { DOCUMENT_PATH, REFERENCE_PATH } from '../paths.ts'
import { DOCUMENT_HEADERS, HTML } from '../web/html.ts'
import { openApiDocument } from './document.ts'

/** The component renders the document and creates inline styles. */
const REFERENCE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; frame-ancestors 'none'"

const CACHED = { 'Cache-Control': 'public, max-age=300' }
const SCRIPT = 'openapi-explorer/dist/browser/openapi-explorer.min.js'

/** The routes of the description; it covers `routes`. */
export function openApiRoutes(routes: readonly Route[]): Route[] {
  const page = readFileSync(new URL('reference.html', import.meta.url))
  const script = readFileSync(createRequire(import.meta.url).resolve(SCRIPT))
  const headers = { ...DOCUMENT_HEADERS, ...CACHED, 'Content-Security-Policy': REFERENCE_POLICY }
  const handlers = {
    [DOCUMENT_PATH]: fixedBody('application/json; charset=utf-8', jsonText(openApiDocument(routes)), CACHED),
    [REFERENCE_PATH]: fixedBody(HTML, page, headers),
    '/assets/openapi-explorer.js': fixedBody('text/javascript; charset=utf-8', script, {
      'Cache-Control': 'public, max-age=86400',
    }),
  }
  return Object.entries(handlers).map(([path, handle]) => ({ method: 'GET', access: 'open', path, handle }))
}
