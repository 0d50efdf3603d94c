/** GET /models (CONTRACT 4.6): the models that the apps use, as chart and table. */
import { createHash } from 'node:crypto'
import { OTHER_MODELS } from '../../../pipeline/contract/dataset.ts'
import type { Format } from '../../datasets/formats/formats.ts'
import { modelsQuestion } from '../../datasets/models/model-ranking.ts'
import { DEFAULT_WINDOW_DAYS, resolveWindow, type DateWindow } from '../../datasets/rankings/window.ts'
import { pinnedAddress } from '../../datasets/rows/links.ts'
import type { ReadableSnapshot, SnapshotFacts } from '../../datasets/snapshots/open-snapshot.ts'
import { MODELS_PAGE_PATH } from '../../paths.ts'
import { address } from '../addresses.ts'
import { inked } from '../charts/colours.ts'
import { columnsOf, withOthers, type Band, type Daily } from '../charts/columns.ts'
import { chartFigure } from '../charts/figure.ts'
import { boxSwatch, stackedColumns } from '../charts/stacked.ts'
import { inWords } from '../days.ts'
import { HTML, renderDocument } from '../document.ts'
import { html, type Html } from '../html.ts'
import { compact, counted, even, exact, share } from '../numbers.ts'
import { provenance, times } from '../provenance.ts'
import { gapNote, readGaps } from '../ranking/gaps.ts'
import { WINDOWS } from '../ranking/page-query.ts'
import { tabs } from '../tabs.ts'
import type { View } from '../views.ts'
import { readDays, readModelDays, readModelTotals, type ModelTotal } from './model-data.ts'
import { readModelsRequest, type ModelsRequest } from './parameters.ts'

/** Models with their own band; all other usage is one band. */
const CHARTED = 6

/** Models in the table, as many as the API returns per day. */
const LISTED = 50

export const modelsView: View<ModelsRequest> = {
  name: 'models',
  contentType: HTML,
  read: readModelsRequest,
  async make({ snapshot }, asked) {
    const window = resolveWindow(asked.parameters, snapshot.dataThrough)
    const totals = await readModelTotals(snapshot, window)
    const used = totals.reduce((sum, { tokens }) => sum + tokens, 0n)
    const figure = used === 0n ? empty(window) : await chartOf(snapshot, totals, window)
    return renderDocument({
      title: `Models, ${inWords(window)}`,
      description: `Language models ranked by the tokens of the public apps. ${snapshot.attribution}`,
      skipTo: { id: 'models', label: 'Skip to the models' },
      header: html`<header>
        <h1>Models</h1>
        <p class="lede">Which models the apps use, by tokens.</p>
        <p class="facts">${times(snapshot)}</p>
      </header>`,
      main: html`${tabs('Models', asked.parameters.as_of)} ${windows(asked)} ${figure} ${provenance(snapshot)}
        <section id="models" aria-label="Models">${used === 0n ? null : table(totals, used)}</section>
        ${fromApi(snapshot, window)}`,
      attribution: snapshot.attribution,
    })
  },
}

function windows({ parameters: { days, start_date, end_date, as_of } }: ModelsRequest): Html {
  const withDays = (length: number) => address(MODELS_PAGE_PATH, { days: String(length), end_date, as_of })
  const chosen = days ?? (start_date === undefined ? DEFAULT_WINDOW_DAYS : undefined)
  return html`<nav class="filters" aria-label="Filters">
    <div role="group" aria-label="Window">
      ${WINDOWS.map(
        (length) =>
          html`<a href="${withDays(length)}" ${length === chosen ? html`aria-current="true"` : null}>
            ${counted(length, 'day')}
          </a>`,
      )}
    </div>
  </nav>`
}

function empty(window: DateWindow): Html {
  return html`<p class="empty">No app was used in this window, ${inWords(window)}.</p>`
}

async function chartOf(
  snapshot: ReadableSnapshot,
  totals: readonly ModelTotal[],
  window: DateWindow,
): Promise<Html> {
  const first = totals.filter(({ model }) => model !== OTHER_MODELS).slice(0, CHARTED)
  const names = first.map(({ model }) => model)
  const [daily, all, gaps] = await Promise.all([
    readModelDays(snapshot, names, window),
    readDays(snapshot, window),
    readGaps(snapshot, window),
  ])
  const columns = columnsOf(bandsOf(names, daily, all), window, gaps)
  return chartFigure({
    id: 'chart',
    measure: 'Tokens',
    caption: html`Tokens per ${columns.unit}, ${inWords(window)}, by model`,
    note: gapNote(snapshot, gaps),
    columns,
    draw: (frame) =>
      stackedColumns(columns, frame, 'Tokens over time, by model; the table below has the figures'),
    swatch: boxSwatch,
    isSum: true,
  })
}

function bandsOf(names: readonly string[], daily: ReadonlyMap<string, Daily>, all: Daily): readonly Band[] {
  const bands = names.map((name) => ({ id: idOf(name), name, daily: daily.get(name) ?? new Map() }))
  return withOthers(inked(bands), all, OTHER_MODELS)
}

/** A model has only a name; this number determines its colour, like an app's id. */
function idOf(model: string): bigint {
  return createHash('sha256').update(model).digest().readBigUInt64BE()
}

function table(totals: readonly ModelTotal[], used: bigint): Html {
  const named = totals.filter(({ model }) => model !== OTHER_MODELS)
  const listed = named.slice(0, LISTED)
  const rest = totals.filter((total) => !listed.includes(total))
  return html`<p class="quiet">${counted(named.length, 'model')}, ${compact(used)} tokens</p>
    <div class="scroll" role="region" aria-label="Models by tokens" tabindex="0">
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">Rank</th>
            <th scope="col">Model</th>
            <th scope="col" class="number">Tokens</th>
            <th scope="col" class="number">Share</th>
            <th scope="col" class="number">Requests</th>
          </tr>
        </thead>
        <tbody>
          ${listed.map((total, index) => row(String(index + 1), total, used))}
          ${rest.length === 0 ? null : row('', together(rest), used)}
        </tbody>
      </table>
    </div>`
}

function together(totals: readonly ModelTotal[]): ModelTotal {
  const sum = (of: (total: ModelTotal) => bigint) => totals.reduce((all, total) => all + of(total), 0n)
  return {
    model: OTHER_MODELS,
    requests: sum(({ requests }) => requests),
    tokens: sum(({ tokens }) => tokens),
  }
}

function row(rank: string, { model, tokens, requests }: ModelTotal, used: bigint): Html {
  return html`<tr>
    <td class="number rank">${rank}</td>
    <th scope="row"><bdi class="name">${model}</bdi></th>
    <td class="number" title="${exact(tokens)} tokens">${even(tokens)}</td>
    <td class="number">${share(tokens, used)}</td>
    <td class="number" title="${exact(requests)} requests">${even(requests)}</td>
  </tr>`
}

function fromApi(snapshot: SnapshotFacts, window: DateWindow): Html {
  const question = modelsQuestion(window)
  const inFormat = (format: Format) => pinnedAddress({ snapshot, question, format })
  return html`<section class="downloads" aria-labelledby="get">
    <h2 id="get">Get the data</h2>
    <p>
      The models of each day from the API, with a key: <a href="${inFormat('json')}">json</a>
      <a href="${inFormat('csv')}">csv</a>. The files of each snapshot have the table
      <code>model_daily</code>; in the DuckDB file, the macro <code>daily_models</code> ranks it.
    </p>
    <p class="quiet">
      A model is listed if usage names it as <code>author/slug</code>; its variants are merged into it. Only
      usage of the public apps counts. <code>${OTHER_MODELS}</code> is all other usage.
    </p>
  </section>`
}
