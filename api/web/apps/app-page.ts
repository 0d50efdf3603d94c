/** GET /apps/{app_id} (CONTRACT 4.6): one app, its usage over time and its ranks. */
import { COMPARABILITY_NOTE } from '../../../pipeline/contract/dataset.ts'
import type { SnapshotFacts } from '../../datasets/snapshots/open-snapshot.ts'
import { APPS_PATH, COMPARE_PATH } from '../../paths.ts'
import { address, snapshotField } from '../addresses.ts'
import { inked } from '../charts/colours.ts'
import { columnsOf, type Daily } from '../charts/columns.ts'
import { chartFigure } from '../charts/figure.ts'
import { boxSwatch, stackedColumns } from '../charts/stacked.ts'
import { inWords } from '../days.ts'
import { HTML, renderDocument } from '../document.ts'
import { html, type Html } from '../html.ts'
import { compact, counted, exact, share } from '../numbers.ts'
import { provenance, times } from '../provenance.ts'
import { gapNote, readGaps, type Gaps } from '../ranking/gaps.ts'
import { tabs } from '../tabs.ts'
import type { View } from '../views.ts'
import {
  readApp,
  readHistory,
  readRanks,
  readShares,
  type CategoryShare,
  type DayOfUsage,
  type ListedApp,
  type WeekOfRanks,
} from './app-data.ts'
import { readAppRequest, type AppRequest } from './parameters.ts'

export const appView: View<AppRequest> = {
  name: 'app',
  contentType: HTML,
  read: readAppRequest,
  async make({ snapshot }, { id, parameters }) {
    const app = await readApp(snapshot, id)
    const [history, ranks, shares] = await Promise.all([
      readHistory(snapshot, app.id),
      readRanks(snapshot, app.id),
      readShares(snapshot, app),
    ])
    const window = { start: history[0]?.day ?? snapshot.firstDay, end: snapshot.dataThrough }
    const gaps = await readGaps(snapshot, window)
    const { as_of: asOf } = parameters
    return renderDocument({
      title: app.name,
      description: `Tokens and requests of ${app.name} by day. ${snapshot.attribution}`,
      skipTo: { id: 'history', label: 'Skip to the history' },
      header: header(app, snapshot, asOf),
      main: html`${tabs(undefined, asOf)}
        <div id="history">${facts(history, ranks)} ${shareList(shares, asOf)}</div>
        ${gapNote(snapshot, gaps)} ${measuresOf(history).map((measure) => chart(app, measure, gaps))}
        ${provenance(snapshot)} ${rankTable(ranks)} ${taking(app, snapshot, asOf)}`,
      attribution: snapshot.attribution,
    })
  },
}

function header({ name, tags }: ListedApp, snapshot: SnapshotFacts, asOf: string | undefined): Html {
  return html`<header>
    <h1><bdi>${name}</bdi></h1>
    <p class="facts">
      ${tags.map((tag) => html`<a class="tag" href="${address('/', { subcategory: tag, as_of: asOf })}">${tag}</a> `)}
      ${times(snapshot)}
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

/** Usage by day of one measure, from the first day of the app on; null without usage. */
function chart(app: ListedApp, measure: AppMeasure, gaps: Gaps): Html | null {
  const { title, daily } = measure
  if ([...daily.values()].every((value) => value === 0n)) return null
  const columns = columnsOf(inked([{ ...app, daily }]), gaps.window, gaps)
  return chartFigure({
    id: title.toLowerCase(),
    measure: title,
    caption: html`${title} per ${columns.unit}, ${inWords(gaps.window)}`,
    note: null,
    columns,
    draw: (frame) =>
      stackedColumns(columns, frame, `${title} per ${columns.unit}; the table below has the figures`),
    swatch: boxSwatch,
    isSum: true,
  })
}

interface AppMeasure {
  readonly title: string
  readonly daily: Daily
}

function measuresOf(history: readonly DayOfUsage[]): readonly AppMeasure[] {
  return [
    { title: 'Tokens', daily: new Map(history.map(({ day, total_tokens }) => [day, BigInt(total_tokens)])) },
    { title: 'Requests', daily: new Map(history.map(({ day, requests }) => [day, requests])) },
  ]
}

/** Its share of each of its categories. */
function shareList(shares: readonly CategoryShare[], asOf: string | undefined): Html | null {
  if (shares.length === 0) return null
  return html`<p class="facts">
    ${shares.map(({ category, own, all }) => html`<span>${share(own, all)} of <a href="${address('/', { category, as_of: asOf })}">${category}</a></span> `)}
    <span class="quiet">by tokens of the last 30 days</span>
  </p>`
}

function rankTable(ranks: readonly WeekOfRanks[]): Html | null {
  if (ranks.length === 0) return null
  return html`<section aria-labelledby="ranks">
    <h2 id="ranks">Rank by week</h2>
    <div class="scroll" role="region" aria-label="Ranks of the last weeks" tabindex="0">
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
                <th scope="row" class="days">${inWords(week)}</th>
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

function taking({ id }: ListedApp, { attribution, sources }: SnapshotFacts, asOf: string | undefined): Html {
  const file = (name: string) => address(`${APPS_PATH}/${id}/${name}`, { as_of: asOf })
  return html`<section class="downloads" aria-labelledby="get">
    <h2 id="get">Get this history</h2>
    <p>
      Figures by day: <a href="${file('history.csv')}">CSV</a>. To embed:
      <a href="${file('chart.svg')}">chart</a>, <a href="${file('badge.svg')}">badge</a> (SVG).
    </p>
    <form method="get" action="${COMPARE_PATH}" class="picker">
      <label for="apps">Compare with the apps</label>
      <input id="apps" name="apps" required value="${id}," />
      ${snapshotField(asOf)}
      <button type="submit">Compare</button>
      <span class="quiet">ids, separated by commas: the id of this app is ${id}</span>
    </form>
    <pre class="copy"><code>${attribution}</code></pre>
    ${sources === null ? null : html`<pre class="copy"><code>${sources}</code></pre>`}
    <p class="quiet">${COMPARABILITY_NOTE}</p>
  </section>`
}
