/** The chart above the ranking: tokens over time of its first apps and of all others. */
import { daysOf, type DateWindow } from '../../datasets/rankings/window.ts'
import { stackedColumns } from '../charts.ts'
import { html, type Html } from '../html.ts'
import { compact, counted, exact } from '../numbers.ts'
import { inWords } from '../days.ts'
import { columnsOf, type Band, type Column } from './columns.ts'
import { gapNote } from './gaps.ts'
import type { PageData } from './page-data.ts'
import type { PageView } from './page-view.ts'

/** Apps that the chart tells apart; the others are one band. */
const CHARTED = 7

/** Tokens over time of the first apps of the page, and of all others. */
export function chart({ snapshot, data, query }: PageView): Html | null {
  if (data.tokens === 0n) return gapNote(snapshot, query, [...data.missing])
  const bands = bandsOf(data)
  const { unit, columns } = columnsOf(bands, query, data.missing)
  const drawnFrom = columns[0]?.start ?? query.start
  return html`<figure>
    <figcaption>
      Tokens per ${unit}, ${inWords(query)}: ${compact(data.tokens)} by ${counted(data.apps, 'app')}
      ${drawnFrom === query.start ? null : html`(the first whole week begins on ${drawnFrom})`}
    </figcaption>
    ${gapNote(snapshot, query, [...data.missing])} ${stackedColumns(bands, columns)}
    <ul class="legend">
      ${bands.map(
        ({ key, name }) =>
          html`<li data-band="${key}"><span class="key band-${key}"></span><bdi>${name}</bdi></li>`,
      )}
    </ul>
    ${dayTable(unit, bands, columns)}
  </figure>`
}

/** The figures of the chart, for those who rather read. */
function dayTable(unit: string, bands: readonly Band[], columns: readonly Column[]): Html {
  return html`<details>
    <summary>The chart as a table</summary>
    <div class="scroll" role="region" aria-label="Tokens per ${unit}" tabindex="0">
      <table>
        <thead>
          <tr>
            <th scope="col">${unit === 'day' ? 'Day' : 'Week'}</th>
            ${bands.map(({ name }) => html`<th scope="col" class="number"><bdi>${name}</bdi></th>`)}
          </tr>
        </thead>
        <tbody>
          ${columns.map((column) => dayRow(column, bands.length))}
        </tbody>
      </table>
    </div>
  </details>`
}

function dayRow(column: Column, bands: number): Html {
  const { values, missing, start, end } = column
  const cells =
    missing === daysOf({ start, end })
      ? html`<td colspan="${bands}">no data</td>`
      : values.map((value) => html`<td class="number">${exact(value)}</td>`)
  return html`<tr>
    <th scope="row">${inWords(column)}</th>
    ${cells}
  </tr>`
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
export function isEmpty(window: DateWindow, { missing }: PageData): boolean {
  return missing.size === daysOf(window)
}
