/** What all pages share: head, first line, foot, chart, errors, and figures for people. */
import { readFileSync } from 'node:fs'
import type { Request } from 'express'
import { COMPARABILITY_NOTE, LICENCE, SUMMARY } from '../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE, SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import { grouped } from '../../pipeline/program/terminal.ts'
import type { SnapshotEntry } from '../datasets/snapshots/catalogue.ts'
import type { Snapshot } from '../datasets/snapshots/facts.ts'
import { beginError, jsonText, sendBody, type Reply } from '../http/call.ts'
import type { ApiError } from '../http/errors.ts'
import type { Given as Sent, ParameterTable } from '../http/query-parameters.ts'
import { FEED_PATH, METHOD_PATH, REFERENCE_PATH, STATUS_PATH } from '../paths.ts'
import { assetAddress } from './assets.ts'
import { address, DOCUMENT_HEADERS, form, HTML, markup, raw, type Given, type Html } from './html.ts'

/** The inputs of a view beside its parameters. */
export type ViewContext = {
  readonly snapshot: Snapshot
  /** The path of its files. */
  readonly folder: string
  readonly isCurrent: boolean
  /** Whether it is the current one, and due days are missing at its end. */
  readonly isStale: boolean
  /** All retained snapshots, newest first. */
  readonly entries: readonly SnapshotEntry[]
  /** Public origin of the service, as far as it is known. */
  readonly origin: string
  /** The last part of the path, for views with one. */
  readonly id: string
}

/** A page or a file. */
export type View = {
  readonly contentType: string
  /** Its parameters; `as_of` chooses the snapshot. */
  readonly parameters: ParameterTable
  /** @throws ApiError for an invalid request, or if the snapshot lacks the requested thing. */
  readonly make: (context: ViewContext, given: Sent) => Promise<string> | string
}

const THREE = { minimumSignificantDigits: 3, maximumSignificantDigits: 3 }
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', ...THREE })

/** Three digits and a unit, `48.3T`, with every digit on hover; below 1000 every digit. */
export function figure(value: bigint, unit: string): Html {
  const short = value < 1000n ? grouped(value) : SHORT.format(value)
  return markup`<span title="${grouped(value)} ${unit}">${short}</span>`
}

type PageDocument = {
  /** Title of the window; the name of the service follows. */
  readonly title: string
  /** The heading; the title by default. */
  readonly heading?: string
  /** The snapshot that is shown; errors have none. */
  readonly context?: ViewContext
  /** The list that the search leads to, by default the one of the apps, and the parameters that it keeps. */
  readonly path?: string
  readonly parameters?: Given
  readonly controls?: Html
  readonly main: Html
  /** Links and notes of this page alone. */
  readonly foot?: Html
  /** Usage by day for the chart: integers, of a list as decimal strings; null on days without data. */
  readonly series?: object
}

/** The whole document, complete without a script except for the chart. */
export function renderDocument(page: PageDocument): string {
  const { title, heading = title, context, controls, main, foot, series } = page
  const document = markup`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${title} · App rankings</title>
    <meta name="description" content="${SUMMARY}" />
    <meta property="og:title" content="${title}" />
    <meta property="og:description" content="${SUMMARY}" />
    <link rel="stylesheet" href="${assetAddress('/assets/page.css')}" />
    <link rel="icon" href="/assets/icon.svg" type="image/svg+xml" />
    <link rel="alternate" type="application/atom+xml" title="Snapshots" href="${FEED_PATH}" />
    ${series && markup`<script defer src="${assetAddress('/assets/chart.js')}"></script>`}
    <script defer src="${assetAddress('/assets/page.js')}"></script>
    ${context && structuredData(context)}
  </head>
  <body>
    ${controls && markup`<a href="#rows">Skip to the table</a>`}
    <header>
      <h1><bdi>${heading}</bdi></h1>
      ${context && firstLine(context, page)}
    </header>
    ${controls}
    <main>${main}</main>
    <footer>
      ${foot}
      <p>
        <a href="/">Rankings</a> · <a href="${SNAPSHOTS_PATH}">All files</a> · <a href="${METHOD_PATH}">Method</a> ·
        <a href="${REFERENCE_PATH}">API</a> · <a href="${STATUS_PATH}">Status</a> · <a href="${FEED_PATH}">Feed</a> ·
        <a rel="license" href="${LICENCE.url}">CC BY 4.0</a>
      </p>
      <p>
        ${context && `${context.snapshot.attribution}.`} ${context?.snapshot.sources} ${COMPARABILITY_NOTE}
      </p>
    </footer>
    ${series && jsonBlock('application/json', series)}
  </body>
</html>`
  return document.html
}

/** The credit line of the bundled sample. */
const SAMPLE = readFileSync(new URL('../../data/sample/ATTRIBUTION', import.meta.url), 'utf8').trim()

/** The age of the data, and the search. */
function firstLine(
  { snapshot, isCurrent, isStale }: ViewContext,
  { controls, path = '/', parameters }: PageDocument,
): Html {
  const { as_of, data_through, sources } = snapshot
  const ofThisSnapshot = { as_of: isCurrent ? null : as_of }
  const kept: Given = parameters ?? ofThisSnapshot
  const field = markup`<input type="search" name="q" value="${kept['q']}" placeholder="Find by name (/)"
    maxlength="100" aria-label="Find by name" />`
  return markup`<p>
      ${controls === undefined && markup`<a href="${address('/', ofThisSnapshot)}">Rankings</a> · `} Data through
      <time>${data_through}</time> <span class="wide">· snapshot <time>${as_of}</time></span>
      ${sources?.includes(SAMPLE) && markup` · <strong>sample data</strong>`}
      ${!isCurrent && markup` · <strong>an earlier snapshot</strong>`}
      ${isStale && markup` · <strong>outdated</strong>`}
    </p>
    ${form(markup`action="${path}" role="search"`, { ...kept, offset: null, q: null }, field)}`
}

/** Describes the shown snapshot to search engines: schema.org/Dataset as JSON-LD. */
function structuredData({ snapshot, folder, entries, origin }: ViewContext): Html {
  const publisher = entries.find(({ id }) => id === snapshot.id)?.publisher ?? 'App Rankings'
  return jsonBlock('application/ld+json', {
    '@context': 'https://schema.org',
    '@type': 'Dataset',
    name: 'App Rankings',
    description: `${SUMMARY} ${COMPARABILITY_NOTE}`,
    url: `${origin}/`,
    identifier: `${origin}${folder}`,
    license: LICENCE.url,
    creator: { '@type': 'Organization', name: publisher, url: `${origin}/` },
    creditText: snapshot.attribution,
    isAccessibleForFree: true,
    dateModified: snapshot.as_of,
    temporalCoverage: `${snapshot.first_day}/${snapshot.data_through}`,
    distribution: [SNAPSHOT_FILE, 'rankings.csv'].map((name) => {
      return { '@type': 'DataDownload', name, contentUrl: `${origin}${folder}/${name}` }
    }),
  })
}

function jsonBlock(type: string, value: unknown): Html {
  // `<` could end the script early.
  const text = jsonText(value).replaceAll('<', String.raw`\u003c`)
  return markup`<script type="${type}">${raw(text)}</script>`
}

const METHOD = raw(readFileSync(new URL('assets/method.html', import.meta.url), 'utf8'))

/** GET /method: how the figures are computed, in plain words. */
export const methodView: View = {
  contentType: HTML,
  parameters: {},
  make: (context) => renderDocument({ title: 'Method', context, main: METHOD }),
}

/** The canvas of the chart of the document's series, and where it is read out; `subject` is that of a list. */
export function chartFigure(label: string, subject?: string): Html {
  return markup`<figure ${subject && markup`data-subject="${subject}"`}>
    <div><canvas tabindex="0" role="img" aria-label="${label}; arrow keys read a day"></canvas></div>
    <figcaption aria-live="polite"></figcaption>
    <noscript><p>The chart needs a script; the table has the figures.</p></noscript>
  </figure>`
}

/** Whether the request prefers HTML, as browsers do; programs get the envelope of CONTRACT 3. */
export function wantsPage(request: Pick<Request, 'accepts'>): boolean {
  return request.accepts(['application/json', 'text/html']) === 'text/html'
}

/** Ends the reply with a page that shows the error and links onward. */
export function sendErrorPage(reply: Reply, fault: ApiError): void {
  const title = `Error ${fault.status}`
  const main = markup`<p>${fault.message.replace(/\.?$/, '.')}</p>
    <p>
      Go on with <a href="/">the rankings</a> or <a href="${SNAPSHOTS_PATH}">the retained snapshots</a>.
    </p>`
  beginError(reply, fault)
  reply.set(DOCUMENT_HEADERS)
  sendBody(reply, fault.status, HTML, renderDocument({ title, main }))
}
