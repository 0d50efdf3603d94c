/** GET /openapi.json and the reference page at /docs (CONTRACT 4.6). */
import { readFileSync } from 'node:fs'
import { jsonText } from '../http/call.ts'
import { fixedBody } from '../http/encodings.ts'
import type { Route } from '../http/route.ts'
import { DOCUMENT_PATH, REFERENCE_PATH } from '../paths.ts'
import { DOCUMENT_HEADERS, HTML } from '../web/html.ts'
import { openApiDocument } from './document.ts'

/** The component renders the document and creates inline styles. */
const REFERENCE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; frame-ancestors 'none'"

const CACHED = { 'Cache-Control': 'public, max-age=300' }

/** The routes of the description; it covers `routes`. */
export function openApiRoutes(routes: readonly Route[]): Route[] {
  const open = { method: 'GET', access: 'open' } as const
  const document = jsonText(openApiDocument(routes))
  const page = readFileSync(new URL('reference.html', import.meta.url))
  const headers = { ...DOCUMENT_HEADERS, ...CACHED, 'Content-Security-Policy': REFERENCE_POLICY }
  return [
    { ...open, path: DOCUMENT_PATH, handle: fixedBody('application/json; charset=utf-8', document, CACHED) },
    { ...open, path: REFERENCE_PATH, handle: fixedBody(HTML, page, headers) },
  ]
}
