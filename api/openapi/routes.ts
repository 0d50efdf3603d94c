/** GET /openapi.json and the reference page at /docs (CONTRACT 4.6). */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fixedBody } from '../http/encodings.ts'
import { DOCUMENT_PATH, METHOD_PATH, REFERENCE_PATH } from '../paths.ts'
import { jsonText } from '../http/respond.ts'
import type { Route } from '../http/route.ts'
import { DOCUMENT_HEADERS, html, HTML } from '../web/html.ts'
import { openApiDocument } from './document.ts'

/** The component renders the document and creates inline styles. */
const REFERENCE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; frame-ancestors 'none'"

const CACHED = { 'Cache-Control': 'public, max-age=300' }

/** The style sheet sets fonts and themes; the component takes its main colour as an attribute. */
const PAGE = `<!doctype html>\n${
  html`<html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <title>API reference · App rankings</title>
      <meta
        name="description"
        content="Every operation of the App Rankings API, with its parameters and replies."
      />
      <link rel="stylesheet" href="/assets/page.css" />
      <link rel="icon" href="/assets/icon.svg" type="image/svg+xml" />
      <script type="module" src="/assets/openapi-explorer.js"></script>
    </head>
    <body>
      <header>
        <h1>API reference</h1>
        <a href="/">App rankings</a> <a href="${METHOD_PATH}">method</a>
        <a href="${DOCUMENT_PATH}">openapi.json</a>
      </header>
      <openapi-explorer
        spec-url="${DOCUMENT_PATH}"
        primary-color="#2c4a5e"
        nav-bg-color="#f4f6f9"
        nav-text-color="#222222"
        secondary-color="#1f5fbf"
        text-color="#222222"
        use-path-in-nav-bar="true"
        display-nulls="true"
        hide-server-selection="true"
        hide-components="true"
      ></openapi-explorer>
      <noscript>
        <p>
          The reference is drawn by a script. What it is drawn from:
          <a href="${DOCUMENT_PATH}">openapi.json</a>
        </p>
      </noscript>
    </body>
  </html>`.html
}`

/** The routes of the description; it covers `routes`. */
export function openApiRoutes(routes: readonly Route[]): Route[] {
  const document = jsonText(openApiDocument(routes))
  const script = readFileSync(
    createRequire(import.meta.url).resolve('openapi-explorer/dist/browser/openapi-explorer.min.js'),
  )
  const handlers = {
    [DOCUMENT_PATH]: fixedBody('application/json; charset=utf-8', document, CACHED),
    [REFERENCE_PATH]: fixedBody(HTML, PAGE, {
      ...DOCUMENT_HEADERS,
      ...CACHED,
      'Content-Security-Policy': REFERENCE_POLICY,
    }),
    '/assets/openapi-explorer.js': fixedBody('text/javascript; charset=utf-8', script, {
      'Cache-Control': 'public, max-age=86400',
    }),
  }
  return Object.entries(handlers).map(([path, handle]) => ({ method: 'GET', access: 'open', path, handle }))
}
