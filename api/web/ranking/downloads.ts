import { COMPARABILITY_NOTE, LICENCE } from '../../../pipeline/contract/dataset.ts'
import { DAYS_FOLDER, SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import { FORMAT_NAMES } from '../../datasets/formats/formats.ts'
import { rankingsQuestion } from '../../datasets/rankings/app-rankings.ts'
import { pinnedAddress } from '../../datasets/rows/links.ts'
import type { SnapshotFile } from '../../datasets/snapshots/catalogue.ts'
import { html, type Html } from '../html.ts'
import { exact } from '../numbers.ts'
import type { PageView } from './page-view.ts'

const MONTH_FILE = /^.*month=(\d{4}-\d{2})\.parquet$/

function isMonth({ name }: SnapshotFile): boolean {
  return MONTH_FILE.test(name)
}

function fileLink({ name, url, bytes }: SnapshotFile): Html {
  return html`<a href="${url}" title="${exact(BigInt(bytes))} bytes">${name.replace(MONTH_FILE, '$1')}</a> `
}

/** How to get the data, and how to cite it. */
export function downloads({ snapshot, query, entries, bibtex, links }: PageView): Html {
  const files = entries.find(({ id }) => id === snapshot.id)?.files ?? []
  const months = files.filter(isMonth)
  return html`<section class="downloads" aria-labelledby="get">
    <h2 id="get">Get the data</h2>
    <p>
      Every file of this snapshot stays under its address:
      ${files.filter((file) => !isMonth(file)).map(fileLink)}
    </p>
    ${months.length === 0 ? null : html`<p>The table ${DAYS_FOLDER}, a Parquet file per month: ${months.map(fileLink)}</p>`}
    <p>
      This list as a file: <a href="${links.file('csv')}">CSV</a> <a href="${links.file('json')}">JSON</a>
    </p>
    <p>
      This list from the API, with a key (<code>npm run keys -- create</code> makes one; the operator of this
      service has it):
      ${FORMAT_NAMES.map((format) => html`<a href="${pinnedAddress({ snapshot, question: rankingsQuestion(query), format })}">${format}</a> `)}
      · <a href="${SNAPSHOTS_PATH}">all snapshots</a>
    </p>
    <h2>Cite it</h2>
    <p>
      Licensed under <a rel="license" href="${LICENCE.url}">CC BY 4.0</a>. When you reuse the data, print this
      line:
    </p>
    <pre class="copy" tabindex="0"><code>${snapshot.attribution}</code></pre>
    ${snapshot.sources === null ? null : html`<pre class="copy" tabindex="0"><code>${snapshot.sources}</code></pre>`}
    ${bibtex === undefined ? null : html`<pre class="copy" tabindex="0"><code>${bibtex}</code></pre>`}
    <p class="quiet">${COMPARABILITY_NOTE}</p>
  </section>`
}
