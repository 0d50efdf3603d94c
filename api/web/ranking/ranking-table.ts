/** The table of a ranking: apps, figures, and their change. */
import { baselineOf, daysOf } from '../../datasets/rankings/window.ts'
import { METHOD_PATH } from '../../paths.ts'
import { pageBefore } from '../../datasets/rows/links.ts'
import type { RankingsQuery } from '../../datasets/rankings/query.ts'
import type { RANKING_COLUMNS } from '../../../pipeline/contract/dataset.ts'
import type { Daily } from '../charts/columns.ts'
import { sparkline } from '../charts/sparkline.ts'
import { html, isolated, type Html } from '../html.ts'
import { compact, counted, even, exact, percent, share } from '../numbers.ts'
import { inWords } from '../days.ts'
import { isEmpty } from './chart.ts'
import { missingDays } from './gaps.ts'
import type { Measure, PageRow } from './page-data.ts'
import type { PageView } from './page-view.ts'

/** A column of the table. */
interface TableColumn {
  readonly title: string
  readonly isNumber: boolean
  readonly cell: (row: PageRow, view: PageView) => Html
}

const RANK: TableColumn = {
  title: 'Rank',
  isNumber: true,
  cell: ({ app }) => html`<td class="number rank">${app.rank}</td>`,
}

const CHANGE: TableColumn = {
  title: 'Change',
  isNumber: false,
  cell: ({ app, earlierRank }) => html`<td>${rankChange(app.rank, earlierRank)}</td>`,
}

const APP: TableColumn = {
  title: 'App',
  isNumber: false,
  cell: ({ app, tags }, { links }) =>
    html`<th scope="row">
      <a href="${links.app(app.app_id)}"><bdi class="name">${app.app_name}</bdi></a>
      ${tags.map((tag) => html`<span class="tag">${tag}</span> `)}
    </th>`,
}

const TOKENS: TableColumn = {
  title: 'Tokens',
  isNumber: true,
  cell: ({ app }) => figure(BigInt(app.total_tokens), 'tokens'),
}

const SHARE: TableColumn = {
  title: 'Share',
  isNumber: true,
  cell: ({ app }, { data, query }) => {
    const own = query.measure === 'tokens' ? BigInt(app.total_tokens) : app.total_requests
    return html`<td class="number">${share(own, data.total)}</td>`
  },
}

const EXCESS: TableColumn = {
  title: 'Growth',
  isNumber: true,
  cell: ({ excess = 0n }) => figure(excess, 'tokens more than the previous average', '+'),
}

const GROWTH: TableColumn = {
  title: 'Growth in percent',
  isNumber: true,
  cell: ({ app, excess = 0n }) =>
    html`<td class="number">${growth(excess, BigInt(app.total_tokens) - excess)}</td>`,
}

const REQUESTS: TableColumn = {
  title: 'Requests',
  isNumber: true,
  cell: ({ app }) => figure(app.total_requests, 'requests'),
}

const RECENT: TableColumn = {
  title: 'Last 30 days',
  isNumber: false,
  cell: ({ app, recent }, { snapshot, data, query }) => {
    const window = data.recentDays
    const missing = missingDays(snapshot, window)
    return html`<td>
      ${sparkline({ daily: recent, window, missing }, trendLabel(app.app_name, query.measure, { recent, missing: missing.size }))}
    </td>`
  },
}

/**
 * The table columns for each column of a ranking row, so that a forgotten column does not compile. If ranks cannot be
 * compared, the change of rank is left out.
 */
function columnsOf({ query, data }: PageView): readonly TableColumn[] {
  const byTokens = query.measure === 'tokens'
  const shareOf = (measure: Measure) => (query.sort === 'popular' && query.measure === measure ? [SHARE] : [])
  const columns: Readonly<Record<keyof typeof RANKING_COLUMNS, readonly TableColumn[]>> = {
    rank: data.earlier.isComparable ? [RANK, CHANGE] : [RANK],
    // The link of the name contains it.
    app_id: [],
    app_name: [APP, ...(query.sort === 'trending' ? [EXCESS, GROWTH] : [])],
    total_tokens: [TOKENS, ...shareOf('tokens')],
    total_requests: [REQUESTS, ...shareOf('requests')],
  }
  const { total_tokens: tokens, total_requests: requests, ...first } = columns
  const measures = byTokens ? [...tokens, ...requests] : [...requests, ...tokens]
  return [...Object.values(first).flat(), ...measures, RECENT]
}

/** The ranking itself. */
export function rankingTable(view: PageView): Html {
  const { data, query, links } = view
  if (data.rows.length === 0) {
    return html`${explanation(view)}
      <p class="empty">${reasonForNoRows(view)}</p>`
  }
  const columns = columnsOf(view)
  return html`${explanation(view)}
    <div class="scroll" role="region" aria-label="Ranking" tabindex="0">
      <table>
        <caption>
          ${query.sort === 'popular' ? `By ${query.measure}` : 'By growth'}, ${inWords(query)} (UTC)
        </caption>
        <thead>
          <tr>
            ${columns.map(
              ({ title, isNumber }) =>
                html`<th scope="col" ${isNumber ? html`class="number"` : null}>${title}</th>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${data.rows.map(
            (row) =>
              html`<tr>
                ${columns.map(({ cell }) => cell(row, view))}
              </tr>`,
          )}
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

function reasonForNoRows({ data, query, links }: PageView): Html {
  if (isEmpty(query, data.gaps)) return html`There is no data of any day of this window.`
  if (query.offset === 0) return html`No app has made this list.`
  return html`The list ends before rank ${query.offset + 1}.
    <a href="${links.page({ offset: '0' })}">To the first rank</a>`
}

/** Explains the order and its baseline. */
function explanation(view: PageView): Html {
  const { query } = view
  const sentence =
    query.sort === 'popular'
      ? `Popular apps are ordered by the ${query.measure} that they ${query.measure === 'tokens' ? 'used' : 'sent'} in the window.`
      : 'Trending apps are ordered by growth: the tokens of the window minus the average of the three windows of equal length before it.'
  const notes = query.sort === 'popular' ? [comparison(view)] : [baseline(view), comparison(view)]
  return html`<p class="quiet">
    ${sentence} ${notes.filter((note) => note !== '').join(' ')} <a href="${METHOD_PATH}">Method</a>
  </p>`
}

/** How much of the baseline the data has. */
function baseline({ snapshot, query }: PageView): string {
  const window = baselineOf(query)
  const days = daysOf(window)
  const missing = missingDays(snapshot, window).size
  if (missing === 0) return `It is compared with the ${days} days ${inWords(window)}.`
  return (
    `It is compared with ${days - missing} of the ${days} days ${inWords(window)}: the data lacks the others, ` +
    'and a day without data counts as zero, so growth looks larger than it is.'
  )
}

/** Why changes of rank are missing or uncertain. */
function comparison({ data: { earlier } }: PageView): string {
  const { window, missing, isComparable } = earlier
  if (missing === 0) return ''
  const lacks = `the data lacks ${missing} of the ${counted(daysOf(window), 'day')} before (${inWords(window)})`
  return isComparable
    ? `The change of rank is uncertain: ${lacks}.`
    : `The change of rank is not shown: ${lacks}.`
}

/**
 * A short figure, with every digit on hover, for screen readers and for the clipboard: short and spoken forms are not
 * copied.
 */
function figure(value: bigint, unit: string, sign = ''): Html {
  const whole = `${sign}${exact(value)}`
  return html`<td class="number" title="${whole} ${unit}">
    <span class="shown" aria-hidden="true">${sign}${even(value)}</span
    ><span class="hidden">${whole}<span class="spoken"> ${unit}</span></span>
  </td>`
}

/** Growth in percent of the previous average; an app without earlier usage has none. */
function growth(excess: bigint, before: bigint): Html {
  return before > 0n ? html`${percent(excess, before)}` : html`<span class="up">new</span>`
}

function rankChange(now: bigint, before: bigint | undefined): Html {
  if (before === undefined) return html`<span class="up">new</span>`
  if (before === now) {
    return html`<span class="quiet" title="rank unchanged"
      ><span class="shown" aria-hidden="true">=</span
      ><span class="hidden">0<span class="spoken"> rank unchanged</span></span></span
    >`
  }
  const up = before > now
  const places = up ? before - now : now - before
  const words = `${up ? 'up' : 'down'} from rank ${before} in the window before`
  return html`<span class="${up ? 'up' : 'down'}" title="${places} ${words}"
    ><span class="shown" aria-hidden="true">${up ? '▲' : '▼'} ${places}</span
    ><span class="hidden">${up ? '+' : '-'}${places}<span class="spoken"> ${words}</span></span></span
  >`
}

function trendLabel(
  name: string,
  measure: Measure,
  { recent, missing }: { readonly recent: Daily; readonly missing: number },
): string {
  const values = [...recent.values()]
  const highest = values.reduce((most, value) => (value > most ? value : most), 0n)
  const gaps = missing === 0 ? '' : `; without data for ${missing} of them`
  return `${isolated(name)}: ${measure} per day over the last 30 days, at most ${compact(highest)}${gaps}`
}

function changeToPageBefore(query: RankingsQuery): Record<string, string> {
  const { limit, offset } = pageBefore(query)
  return { offset: String(offset), ...(limit === query.limit ? {} : { limit: String(limit) }) }
}
