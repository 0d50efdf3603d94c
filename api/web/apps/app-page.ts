/** GET /apps/{app_id} (CONTRACT 4.6): one app, its usage over time and where it stands. */
import { COMPARABILITY_NOTE } from '../../../pipeline/contract/dataset.ts'
import type { SnapshotFacts } from '../../datasets/snapshots/open-snapshot.ts'
import { APPS_PATH, COMPARE_PATH } from '../../paths.ts'
import { stackedColumns } from '../charts.ts'
import { inWords } from '../days.ts'
import { HTML, renderDocument } from '../document.ts'
import { html, type Html } from '../html.ts'
import { compact, counted, exact } from '../numbers.ts'
import { columnsOf } from '../ranking/columns.ts'
import { gapNote, missingDays } from '../ranking/gaps.ts'
import type { View } from '../views.ts'
import {
  readApp,
  readHistory,
  readRanks,
  type DayOfUsage,
  type ListedApp,
  type WeekOfRanks,
} from './app-data.ts'
import { askedApp, type AskedApp } from './parameters.ts'

export const appView: View<AskedApp> = {
  name: 'app',
  contentType: HTML,
  read: askedApp,
  async make({ snapshot }, { id, parameters }) {
    const app = await readApp(snapshot, id)
    const [history, ranks] = await Promise.all([readHistory(snapshot, app.id), readRanks(snapshot, app.id)])
    const pin = parameters.as_of === undefined ? '' : `?as_of=${encodeURIComponent(parameters.as_of)}`
    return renderDocument({
      title: app.name,
      description: `Tokens and requests of ${app.name} by day. ${snapshot.attribution}`,
      skipTo: { id: 'history', label: 'Skip to the history' },
      header: header(app, snapshot),
      main: html`${facts(history, ranks)} ${history.length === 0 ? null : chart(app, snapshot, history)}
      ${rankTable(ranks)} ${taking(app, snapshot, pin)}`,
      attribution: snapshot.attribution,
    })
  },
}

function header({ name, tags }: ListedApp, { asOf, dataThrough }: SnapshotFacts): Html {
  return html`<header>
    <h1><bdi>${name}</bdi></h1>
    <p class="facts">
      ${tags.map((tag) => html`<a class="tag" href="/?subcategory=${tag}">${tag}</a> `)}
      <span>Data through <time datetime="${dataThrough}">${dataThrough}</time></span>
      <span>as of <time datetime="${asOf}">${asOf}</time></span>
    </p>
  </header>`
}

function facts(history: readonly DayOfUsage[], ranks: readonly WeekOfRanks[]): Html {
  const first = history[0]
  if (first === undefined) return html`<p>No usage of this app is part of the data.</p>`
  const tokens = history.reduce((sum, { total_tokens }) => sum + BigInt(total_tokens), 0n)
  const best = ranks
    .flatMap(({ ranks: { popular } }) => popular ?? [])
    .reduce<bigint | undefined>(
      (least, rank) => (least === undefined || rank < least ? rank : least),
      undefined,
    )
  return html`<p class="facts">
    <span>First day ${first.day}</span>
    <span title="${exact(tokens)} tokens"
      >${compact(tokens)} tokens on ${counted(history.length, 'day')}</span
    >
    ${best === undefined ? null : html`<span>best weekly rank ${best}</span>`}
  </p>`
}

function chart({ name }: ListedApp, snapshot: SnapshotFacts, history: readonly DayOfUsage[]): Html {
  const window = { start: history[0]?.day ?? snapshot.firstDay, end: snapshot.dataThrough }
  const daily = new Map(history.map(({ day, total_tokens }) => [day, BigInt(total_tokens)]))
  const missing = missingDays(snapshot, window)
  const bands = [{ key: '0', name, daily }]
  const { unit, columns } = columnsOf(bands, window, missing)
  return html`<figure id="history">
    <figcaption>Tokens per ${unit}, ${inWords(window)}</figcaption>
    ${gapNote(snapshot, window, [...missing])} ${stackedColumns(bands, columns)}
    <details>
      <summary>Its days as a table</summary>
      <div class="scroll" role="region" aria-label="Usage by day" tabindex="0">
        <table>
          <thead>
            <tr>
              <th scope="col">Day</th>
              <th scope="col" class="number">Requests</th>
              <th scope="col" class="number">Tokens</th>
            </tr>
          </thead>
          <tbody>
            ${history.toReversed().map(
              ({ day, requests, total_tokens }) =>
                html`<tr>
                  <th scope="row">${day}</th>
                  <td class="number">${exact(requests)}</td>
                  <td class="number">${exact(BigInt(total_tokens))}</td>
                </tr>`,
            )}
          </tbody>
        </table>
      </div>
    </details>
  </figure>`
}

function rankTable(ranks: readonly WeekOfRanks[]): Html | null {
  if (ranks.length === 0) return null
  return html`<section aria-labelledby="ranks">
    <h2 id="ranks">Rank by week</h2>
    <div class="scroll" role="region" aria-label="Rank by week" tabindex="0">
      <table>
        <thead>
          <tr>
            <th scope="col">Week</th>
            <th scope="col" class="number">Popular</th>
            <th scope="col" class="number">Trending</th>
          </tr>
        </thead>
        <tbody>
          ${ranks.map(
            ({ week, ranks: { popular, trending } }) =>
              html`<tr>
                <th scope="row">${inWords(week)}</th>
                ${rankCell(popular)} ${rankCell(trending)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`
}

function rankCell(rank: bigint | undefined): Html {
  return html`<td class="number">
    ${rank === undefined ? html`<span class="quiet">not listed</span>` : rank}
  </td>`
}

function taking({ id }: ListedApp, { attribution }: SnapshotFacts, pin: string): Html {
  const here = `${APPS_PATH}/${id}`
  return html`<section class="downloads" aria-labelledby="get">
    <h2 id="get">Get this history</h2>
    <p>
      <a href="${here}/history.csv${pin}">CSV</a> · chart to embed:
      <a href="${here}/chart.svg${pin}">SVG</a> · badge:
      <a href="${here}/badge.svg${pin}">SVG</a>
    </p>
    <form method="get" action="${COMPARE_PATH}" class="picker">
      <label for="apps">Compare with the apps</label>
      <input id="apps" name="apps" required value="${id}," />
      <button type="submit">Compare</button>
      <span class="quiet">ids, separated by commas: the id of this app is ${id}</span>
    </form>
    <pre class="copy" tabindex="0"><code>${attribution}</code></pre>
    <p class="quiet">${COMPARABILITY_NOTE}</p>
  </section>`
}
