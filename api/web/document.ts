/** The common parts of all pages: head, foot, and content security policy. */
import { LICENCE } from '../../pipeline/contract/dataset.ts'
import { FEED_PATH, METHOD_PATH, REFERENCE_PATH, STATUS_PATH } from '../paths.ts'
import { PICTURE } from './charts/picture.ts'
import { html, raw, type Html } from './html.ts'

export const HTML = 'text/html; charset=utf-8'

/** Nothing from another host and nothing inline: styles and scripts are local files. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self'",
  // Audits of a page ask for robots.txt in its name.
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

export interface PageDocument {
  /** Title of the window; the name of the service follows. */
  readonly title: string
  readonly description: string
  /** Target of the skip link. */
  readonly skipTo: { readonly id: string; readonly label: string }
  readonly header: Html
  readonly main: Html
  /** The attribution line, if the page shows data. */
  readonly attribution?: string
  /** The schema.org description of the dataset. */
  readonly structuredData?: object | undefined
  /** Address of the picture for link previews. */
  readonly picture?: string
}

/** The whole document, open to everybody and complete without a script. */
export function renderDocument(page: PageDocument): string {
  const { skipTo, header, main, attribution } = page
  return `<!doctype html>\n${
    html`<html lang="en">
      ${head(page)}
      <body>
        <a class="skip" href="#${skipTo.id}">${skipTo.label}</a>
        ${header}
        <main>${main}</main>
        <footer>
          <p>
            ${attribution === undefined ? null : html`${attribution} · `}<a href="/">rankings</a> ·
            <a href="${METHOD_PATH}">method</a> · <a href="${REFERENCE_PATH}">API reference</a> ·
            <a href="${STATUS_PATH}">status</a> · <a href="${FEED_PATH}">feed</a>
          </p>
        </footer>
      </body>
    </html>`.html
  }`
}

function head({ title, description, structuredData, picture }: PageDocument): Html {
  return html`<head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${title} · App rankings</title>
    <meta name="description" content="${description}" />
    <link rel="stylesheet" href="/assets/page.css" />
    <link rel="icon" href="/assets/icon.svg" type="image/svg+xml" />
    <link rel="alternate" type="application/atom+xml" title="Snapshots" href="${FEED_PATH}" />
    <meta property="og:type" content="website" />
    <meta property="og:site_name" content="App rankings" />
    <meta property="og:title" content="${title}" />
    <meta property="og:description" content="${description}" />
    ${picture === undefined ? null : pictureTags(picture)}
    <link rel="license" href="${LICENCE.url}" />
    <script type="module" src="/assets/page.js"></script>
    ${structuredData === undefined ? null : jsonLd(structuredData)}
  </head>`
}

function pictureTags(picture: string): Html {
  return html`<meta property="og:image" content="${picture}" />
    <meta property="og:image:type" content="image/png" />
    <meta property="og:image:width" content="${PICTURE.width}" />
    <meta property="og:image:height" content="${PICTURE.height}" />
    <meta name="twitter:card" content="summary_large_image" />`
}

/** `<` could end the script early, so it is escaped in the JSON text. */
function jsonLd(data: object): Html {
  return raw(
    `<script type="application/ld+json">${JSON.stringify(data).replaceAll('<', String.raw`\u003c`)}</script>`,
  )
}
