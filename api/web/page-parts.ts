/** The parts of the page for people, from top to bottom. */
import { COMPARABILITY_NOTE, LICENCE, SORTS } from '../../pipeline/contract/dataset.ts'
import { DAYS_FOLDER, SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import { CATEGORIES, subcategoriesOf } from '../../pipeline/contract/taxonomy.ts'
import { FORMAT_NAMES } from '../datasets/formats/formats.ts'
import { pageBefore, pinnedAddress } from '../datasets/rankings/links.ts'
import type { RankingsQuery } from '../datasets/rankings/query.ts'
import type { SnapshotFacts } from '../datasets/snapshots/open-snapshot.ts'
import type { SnapshotEntry, SnapshotFile } from '../datasets/snapshots/catalogue.ts'
import { daysOf, type DateWindow } from '../datasets/rankings/window.ts'
import type { Age } from './age.ts'
import { sparkline, stackedColumns } from './charts.ts'
import { columnsOf, type Band } from './columns.ts'
import { gapNote, missingDays } from './gaps.ts'
import { html, isolated, type Html } from './html.ts'
import { compact, counted, exact, share } from './numbers.ts'
import type { DailyTokens, PageData, PageRow } from './page-data.ts'
import type { PageLinks } from './page-links.ts'
import { WINDOWS, type PageParameters } from './page-query.ts'

/** Apps that the chart tells apart; the others are one band. */
const CHARTED = 7

/** What the parts are made of. */
export interface PageView {
  readonly snapshot: SnapshotFacts
  readonly isCurrent: boolean
  readonly query: RankingsQuery
  readonly asked: PageParameters
  readonly data: PageData
  readonly links: PageLinks
  /** All retained snapshots, newest first. */
  readonly entries: readonly SnapshotEntry[]
  readonly freshness: { readonly age: Age; readonly nextRun: string | undefined }
  /** BibTeX of the snapshot, where its metadata has it. */
  readonly bibtex: string | undefined
}

/** Title, what the data is, and how fresh. */
export function header({ snapshot, isCurrent, freshness }: PageView): Html {
  return html`<header>
    <h1>App rankings</h1>
    <p class="lede">Which apps use large language models, by how much, and which are growing.</p>
    <p class="facts">
      <span>Data through <time datetime="${snapshot.dataThrough}">${snapshot.dataThrough}</time></span>
      <span>as of <time datetime="${snapshot.asOf}">${snapshot.asOf}</time></span>
      ${isCurrent ? ageBadge(freshness.age, snapshot) : html`<span class="badge warn">an earlier snapshot</span>`}
      ${freshness.nextRun === undefined ? null : html`<span class="quiet">next run ${freshness.nextRun}</span>`}
    </p>
  </header>`
}

function ageBadge(age: Age, { dataThrough }: SnapshotFacts): Html {
  switch (age) {
    case 'current':
      return html`<span class="badge good">up to date</span>`
    case 'ended':
      return html`<span class="badge warn">data ends ${dataThrough}</span>`
    case 'overdue':
      return html`<span class="badge warn">stale: a new snapshot is overdue</span>`
  }
}

/** The filters, as links that can be shared. */
export function filters({ query, asked, links }: PageView): Html {
  const group = asked.parameters.category ?? groupOf(query.subcategory)
  const choice = (label: string, change: Record<string, string | null>, chosen: boolean) =>
    html`<a href="${links.page(change)}" ${chosen ? html`aria-current="true"` : null}>${label}</a>`
  return html`<nav class="filters" aria-label="Filters">
    <div role="group" aria-label="Order">
      ${SORTS.map((sort) => choice(sort, { sort }, sort === query.sort))}
    </div>
    <div role="group" aria-label="Window">
      ${WINDOWS.map((days) =>
        choice(
          counted(days, 'day'),
          { days: String(days), start_date: null, end_date: null },
          asked.days === days,
        ),
      )}
    </div>
    <div role="group" aria-label="Category">
      ${choice('all', { category: null, subcategory: null }, group === undefined)}
      ${CATEGORIES.map((category) => choice(category, { category, subcategory: null }, category === group))}
    </div>
    ${
      group === undefined
        ? null
        : html`<div role="group" aria-label="Subcategory">
            ${choice(`all ${group}`, { category: group, subcategory: null }, query.subcategory === null)}
            ${subcategoriesOf(group).map((subcategory) =>
              choice(subcategory, { category: group, subcategory }, subcategory === query.subcategory),
            )}
          </div>`
    }
  </nav>`
}

function groupOf(subcategory: string | null) {
  return CATEGORIES.find((category) => subcategoriesOf(category).some((each) => each === subcategory))
}

/** Tokens over time of the first apps of the page, and of all others. */
export function chart({ snapshot, data, query }: PageView): Html {
  const bands = bandsOf(data)
  const { unit, columns } = columnsOf(bands, query, data.missing)
  const drawnFrom = columns[0]?.start ?? query.start
  return html`<figure>
    <figcaption>
      Tokens per ${unit}, ${query.start} to ${query.end}:
      ${isEmpty(query, data) ? 'no data' : `${compact(data.tokens)} by ${counted(data.apps, 'app')}`}
      ${drawnFrom === query.start ? null : html`(the first whole week begins on ${drawnFrom})`}
    </figcaption>
    ${gapNote(snapshot, query, [...data.missing])} ${stackedColumns(bands, columns)}
    <ul class="legend">
      ${bands.map(
        ({ key, name }) =>
          html`<li data-band="${key}"><span class="key band-${key}"></span><bdi>${name}</bdi></li>`,
      )}
    </ul>
  </figure>`
}

function bandsOf({ rows, daily: totals }: PageData): Band[] {
  const first = rows.slice(0, CHARTED)
  const bands = first.map(({ app, daily }, index) => ({ key: String(index), name: app.app_name, daily }))
  const others = new Map(
    [...totals].map(([day, total]) => [
      day,
      first.reduce((rest, { daily }) => rest - (daily.get(day) ?? 0n), total),
    ]),
  )
  const hasOthers = [...others.values()].some((tokens) => tokens > 0n)
  return hasOthers ? [...bands, { key: 'others', name: 'all others', daily: others }] : bands
}

/** Whether the data has no day of the window. */
function isEmpty(window: DateWindow, { missing }: PageData): boolean {
  return missing.size === daysOf(window)
}

/** The ranking itself. */
export function table(view: PageView): Html {
  const { snapshot, data, query, links } = view
  if (data.rows.length === 0) {
    const reason = isEmpty(query, data)
      ? 'There is no data of any day of this window.'
      : 'No app has made this list.'
    return html`<p class="empty">${reason}</p>`
  }
  const missing = missingDays(snapshot, data.recentDays)
  return html`<div class="scroll" role="region" aria-label="Ranking" tabindex="0">
      <table>
        <caption>
          ${query.sort === 'popular' ? 'By tokens' : 'By growth'}, ${query.start} to ${query.end} (UTC)
        </caption>
        <thead>
          <tr>
            <th scope="col" class="number">Rank</th>
            <th scope="col">Change</th>
            <th scope="col">App</th>
            <th scope="col" class="number">Tokens</th>
            <th scope="col" class="number">Share</th>
            <th scope="col" class="number">Requests</th>
            <th scope="col">Last 30 days</th>
          </tr>
        </thead>
        <tbody>
          ${data.rows.map((row) => tableRow(row, view, missing))}
        </tbody>
      </table>
    </div>
    <nav class="pages" aria-label="Pages">
      ${
        query.offset > 0
          ? html`<a rel="prev" href="${links.page(changeToPageBefore(query))}">Previous</a>`
          : null
      }
      ${
        data.hasNext
          ? html`<a rel="next" href="${links.page({ offset: String(query.offset + query.limit) })}">Next</a>`
          : null
      }
    </nav>`
}

/** `missing`: the days that the small lines lack. */
function tableRow(
  { app, tags, earlierRank, recent }: PageRow,
  { data }: PageView,
  missing: ReadonlySet<string>,
): Html {
  const tokens = BigInt(app.total_tokens)
  const window = data.recentDays
  return html`<tr>
    <td class="number rank">${app.rank}</td>
    <td>${data.comparable ? rankChange(app.rank, earlierRank) : '–'}</td>
    <th scope="row">
      <bdi class="name">${app.app_name}</bdi>
      ${tags.map((tag) => html`<span class="tag">${tag}</span> `)}
    </th>
    <td class="number" title="${exact(tokens)} tokens">${compact(tokens)}</td>
    <td class="number">${share(tokens, data.tokens)}</td>
    <td class="number" title="${exact(app.total_requests)} requests">${compact(app.total_requests)}</td>
    <td>${sparkline({ daily: recent, window, missing }, trendLabel(app.app_name, recent, missing.size))}</td>
  </tr>`
}

function rankChange(now: bigint, before: bigint | undefined): Html {
  if (before === undefined) return html`<span class="up">new</span>`
  if (before === now) return html`<span class="quiet" title="rank unchanged">=</span>`
  const up = before > now
  const places = up ? before - now : now - before
  const words = `${up ? 'up' : 'down'} ${places} from rank ${before} in the window before`
  return html`<span class="${up ? 'up' : 'down'}" title="${words}">
    <span aria-hidden="true">${up ? '▲' : '▼'}</span> ${places}<span class="hidden"> ${words}</span>
  </span>`
}

function trendLabel(name: string, recent: DailyTokens, missing: number): string {
  const values = [...recent.values()]
  const highest = values.reduce((most, value) => (value > most ? value : most), 0n)
  const gaps = missing === 0 ? '' : `; without data for ${missing} of them`
  return `${isolated(name)}: tokens per day over the last 30 days, at most ${compact(highest)}${gaps}`
}

function changeToPageBefore(query: RankingsQuery): Record<string, string> {
  const { limit, offset } = pageBefore(query)
  return { offset: String(offset), ...(limit === query.limit ? {} : { limit: String(limit) }) }
}

/** Which snapshot is shown, and the others that are kept. */
export function snapshotPicker({ snapshot, asked, entries, query }: PageView): Html {
  const hidden = {
    sort: query.sort,
    category: asked.parameters.category,
    subcategory: query.subcategory,
    days: asked.days,
    start_date: asked.parameters.start_date,
    end_date: asked.parameters.end_date,
    limit: asked.parameters.limit,
  }
  return html`<form method="get" action="/" class="picker">
    ${Object.entries(hidden).map(([name, value]) =>
      value === null || value === undefined
        ? null
        : html`<input type="hidden" name="${name}" value="${value}" />`,
    )}
    <label for="as_of">Snapshot</label>
    <select id="as_of" name="as_of">
      ${entries.map(
        ({ as_of }) =>
          html`<option value="${as_of}" ${as_of === snapshot.asOf ? html`selected` : null}>${as_of}</option>`,
      )}
    </select>
    <button type="submit">Show</button>
  </form>`
}

const MONTH_FILE = /^.*month=(\d{4}-\d{2})\.parquet$/

function isMonth({ name }: SnapshotFile): boolean {
  return MONTH_FILE.test(name)
}

function fileLink({ name, url, bytes }: SnapshotFile): Html {
  return html`<a href="${url}" title="${exact(BigInt(bytes))} bytes">${name.replace(MONTH_FILE, '$1')}</a> `
}

/** How to get the data, and how to cite it. */
export function downloads({ snapshot, query, entries, bibtex }: PageView): Html {
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
      This list from the API, with a key:
      ${FORMAT_NAMES.map((format) => html`<a href="${pinnedAddress({ snapshot, query, format })}">${format}</a> `)}
      · <a href="${SNAPSHOTS_PATH}">all snapshots</a>
    </p>
    <h2>Cite it</h2>
    <p>
      Licensed under <a rel="license" href="${LICENCE.url}">CC BY 4.0</a>. When you reuse the data, print this
      line:
    </p>
    <pre class="copy" tabindex="0"><code>${snapshot.attribution}</code></pre>
    ${bibtex === undefined ? null : html`<pre class="copy" tabindex="0"><code>${bibtex}</code></pre>`}
    <p class="quiet">${COMPARABILITY_NOTE}</p>
  </section>`
}
