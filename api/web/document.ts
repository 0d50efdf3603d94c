/** The common parts of all pages: head, first line, foot, and content security policy. */
import { LICENCE } from '../../pipeline/contract/dataset.ts'
import { SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import { FEED_PATH, METHOD_PATH, REFERENCE_PATH, STATUS_PATH } from '../paths.ts'
import { assetAddress } from './assets.ts'
import { html, raw, type Html } from './html.ts'

export const HTML = 'text/html; charset=utf-8'

/** Nothing from another host and nothing inline: styles and scripts are local files. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

interface PageDocument {
  /** Title of the window; the name of the service follows. */
  readonly title: string
  readonly description: string
  readonly header: Html
  readonly main: Html
  /** Links and notes of this page alone. */
  readonly foot?: Html
  /** Address of the JSON or CSV that the chart is drawn from. */
  readonly source?: string
  /** The schema.org description of the dataset. */
  readonly structuredData?: object
}

/** The whole document, complete without a script except for the chart. */
export function renderDocument(page: PageDocument): string {
  return `<!doctype html>\n${
    html`<html lang="en">
      ${head(page)}
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header>${page.header}</header>
        <main id="main">${page.main}</main>
        <footer>
          ${page.foot}
          <p>
            <a href="/">Rankings</a> · <a href="${SNAPSHOTS_PATH}">All files</a> ·
            <a href="${METHOD_PATH}">Method</a> · <a href="${REFERENCE_PATH}">API</a> ·
            <a href="${STATUS_PATH}">Status</a> · <a href="${FEED_PATH}">Feed</a> ·
            <a rel="license" href="${LICENCE.url}">CC BY 4.0</a>
          </p>
        </footer>
      </body>
    </html>`.html
  }`
}

function head({ title, description, source, structuredData }: PageDocument): Html {
  return html`<head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${title} · App rankings</title>
    <meta name="description" content="${description}" />
    <link rel="stylesheet" href="${assetAddress('/assets/page.css')}" />
    <link rel="icon" href="/assets/icon.svg" type="image/svg+xml" />
    <link rel="alternate" type="application/atom+xml" title="Snapshots" href="${FEED_PATH}" />
    <meta property="og:type" content="website" />
    <meta property="og:title" content="${title}" />
    <meta property="og:description" content="${description}" />
    ${
      source === undefined
        ? null
        : html`<link rel="preload" as="fetch" crossorigin href="${source}" />
            <script defer src="${assetAddress('/assets/chart.js')}"></script>
            <script defer src="${assetAddress('/assets/page.js')}"></script>`
    }
    <script defer src="${assetAddress('/assets/search.js')}"></script>
    ${structuredData === undefined ? null : jsonLd(structuredData)}
  </head>`
}

/** `<` could end the script early, so it is escaped in the JSON text. */
function jsonLd(data: object): Html {
  return raw(
    `<script type="application/ld+json">${JSON.stringify(data).replaceAll('<', String.raw`\u003c`)}</script>`,
  )
}

/** The canvas of a chart, drawn by the script from `source`, and where it is read out. */
export function chartFigure(source: string, kind: 'stacked' | 'lines', label: string): Html {
  return html`<figure id="plot" data-source="${source}" data-kind="${kind}" data-label="${label}">
    <div><canvas tabindex="0" role="img" aria-label="${label}"></canvas></div>
    <ul class="legend"></ul>
    <p class="reading" aria-live="polite"></p>
    <noscript><p>The chart needs a script; the table has the figures.</p></noscript>
  </figure>`
}
