/** The page for people at the origin (CONTRACT 4.6): rendered here, whole without a script, open to everybody. */
import { LICENCE } from '../../pipeline/contract/dataset.ts'
import type { RankingsQuery } from '../datasets/rankings/query.ts'
import { FEED_PATH, REFERENCE_PATH, STATUS_PATH } from '../paths.ts'
import { html, raw, type Html } from './html.ts'
import { chart, downloads, filters, header, snapshotPicker, table, type PageView } from './page-parts.ts'

/** The whole document; `structuredData` is the schema.org description of the dataset. */
export function renderPage(view: PageView, structuredData: object | undefined): string {
  const title = titleOf(view.query)
  return `<!doctype html>\n${
    html`<html lang="en">
      ${head(view, title, structuredData)}
      <body>
        <a class="skip" href="#ranking">Skip to the ranking</a>
        ${header(view)}
        <main>
          ${filters(view)} ${chart(view)}
          <section id="ranking" aria-label="${title}">${table(view)}</section>
          ${snapshotPicker(view)} ${downloads(view)}
        </main>
        <footer>
          <p>
            ${view.snapshot.attribution} · <a href="${REFERENCE_PATH}">API reference</a> ·
            <a href="${STATUS_PATH}">status</a> · <a href="${FEED_PATH}">feed</a>
          </p>
        </footer>
      </body>
    </html>`.html
  }`
}

function titleOf({ sort, category, subcategory }: RankingsQuery): string {
  const subject = subcategory ?? category
  return `${sort === 'popular' ? 'Popular' : 'Trending'} ${subject === null ? '' : `${subject} `}apps`
}

function head({ query, snapshot }: PageView, title: string, structuredData: object | undefined): Html {
  return html`<head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${title}, ${query.start} to ${query.end} · App rankings</title>
    <meta
      name="description"
      content="Apps ranked by their use of large language models. ${snapshot.attribution}"
    />
    <link rel="stylesheet" href="/assets/page.css" />
    <link rel="icon" href="/assets/icon.svg" type="image/svg+xml" />
    <link rel="alternate" type="application/atom+xml" title="Snapshots" href="${FEED_PATH}" />
    <link rel="license" href="${LICENCE.url}" />
    <script type="module" src="/assets/page.js"></script>
    ${structuredData === undefined ? null : jsonLd(structuredData)}
  </head>`
}

/** A `<` could end the script early, and stands for itself in JSON text as an escape. */
function jsonLd(data: object): Html {
  return raw(
    `<script type="application/ld+json">${JSON.stringify(data).replaceAll('<', String.raw`\u003c`)}</script>`,
  )
}
