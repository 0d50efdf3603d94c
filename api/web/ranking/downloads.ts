import { COMPARABILITY_NOTE, LICENCE } from '../../../pipeline/contract/dataset.ts'
import { MONTHLY_TABLES, SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import { FORMAT_NAMES, type Format } from '../../datasets/formats/formats.ts'
import { rankingsQuestion } from '../../datasets/rankings/app-rankings.ts'
import { pinnedAddress } from '../../datasets/rows/links.ts'
import { isMonth, type SnapshotFile } from '../../datasets/snapshots/catalogue.ts'
import { html, type Html } from '../html.ts'
import { exact } from '../numbers.ts'
import type { PageView } from './page-view.ts'

const MONTH_FILE = /^.*month=(\d{4}-\d{2})\.parquet$/

function fileLink({ name, url, bytes }: SnapshotFile): Html {
  return html`<a href="${url}" title="${exact(BigInt(bytes))} bytes">${name.replace(MONTH_FILE, '$1')}</a> `
}

/** The months of each table by day; empty for a snapshot without them. */
function monthLists(files: readonly SnapshotFile[]): readonly (Html | null)[] {
  return MONTHLY_TABLES.map((table) => {
    const months = files.filter(({ name }) => name.startsWith(`${table}/`) && name.endsWith('.parquet'))
    return months.length === 0
      ? null
      : html`<p>The table ${table}, a Parquet file per month: ${months.map(fileLink)}</p>`
  })
}

/** Downloads, API requests and citation. */
export function downloads(view: PageView): Html {
  const { snapshot, entries, bibtex, links } = view
  const files = entries.find(({ id }) => id === snapshot.id)?.files ?? []
  return html`<section class="downloads" aria-labelledby="get">
    <h2 id="get">Get the data</h2>
    <p>
      Every file of this snapshot stays under its address:
      ${files.filter((file) => !isMonth(file)).map(fileLink)}
    </p>
    ${monthLists(files)}
    <p>
      This list as a file: <a href="${links.file('csv')}">CSV</a> <a href="${links.file('json')}">JSON</a>.
      The chart as a picture: <a href="${links.chart('svg')}">SVG</a> <a href="${links.chart('png')}">PNG</a>.
      <a href="${SNAPSHOTS_PATH}">All snapshots</a>
    </p>
    ${fromApi(view)}
    <h2>Cite it</h2>
    <p>
      Licensed under <a rel="license" href="${LICENCE.url}">CC BY 4.0</a>. When you reuse the data, print this
      line:
    </p>
    <pre class="copy"><code>${snapshot.attribution}</code></pre>
    ${snapshot.sources === null ? null : html`<pre class="copy"><code>${snapshot.sources}</code></pre>`}
    ${bibtex === undefined ? null : html`<pre class="copy"><code>${bibtex}</code></pre>`}
    <p class="quiet">${COMPARABILITY_NOTE}</p>
  </section>`
}

/** The API request for this list; null for the order by requests, which the API does not offer. */
function fromApi({ snapshot, query, origin }: PageView): Html | null {
  if (query.measure !== 'tokens') return null
  const address = (format: Format) => pinnedAddress({ snapshot, question: rankingsQuestion(query), format })
  return html`<p>
      This list from the API, with a key. The operator of this service makes keys:
      <code>npm run keys -- create --account NAME --kind inference</code>. Formats:
      ${FORMAT_NAMES.map((format) => html`<a href="${address(format)}">${format}</a> `)}
    </p>
    <pre class="copy"><code>curl -H 'Authorization: Bearer &lt;API_KEY&gt;' '<span
      class="origin">${origin}</span>${address('json')}'</code></pre>`
}
