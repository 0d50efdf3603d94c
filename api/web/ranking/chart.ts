/** The chart above the ranking: usage over time of the page's first apps, and of all others. */
import { daysOf, type DateWindow } from '../../datasets/rankings/window.ts'
import { inked } from '../charts/colours.ts'
import { columnsOf, withOthers, type Band, type Columns } from '../charts/columns.ts'
import { chartFigure } from '../charts/figure.ts'
import type { Frame } from '../charts/frame.ts'
import { boxSwatch, stackedColumns } from '../charts/stacked.ts'
import { inWords } from '../days.ts'
import { html, type Html } from '../html.ts'
import { compact, counted } from '../numbers.ts'
import { gapNote, type Gaps } from './gaps.ts'
import type { PageData, PageRanking } from './page-data.ts'
import type { PageView } from './page-view.ts'

/** Apps with their own band; the others share one. */
const CHARTED = 7

/** The chart of the page; without usage only the note on the days. */
export function chart({ snapshot, data, query }: PageView): Html | null {
  const note = gapNote(snapshot, data.gaps)
  if (data.total === 0n) return note
  const columns = rankingColumns(data, query)
  const measure = measureTitle(query)
  const drawnFrom = columns.columns[0]?.start ?? query.start
  return chartFigure({
    id: 'chart',
    measure,
    caption: html`${measure} per ${columns.unit}, ${inWords(query)}: ${compact(data.total)} by
    ${counted(data.apps, 'app')}
    ${drawnFrom === query.start ? null : html`(the first whole week begins on ${drawnFrom})`}`,
    note,
    columns,
    draw: (frame) => drawRanking(columns, frame, measure),
    swatch: boxSwatch,
    isSum: true,
  })
}

/** The measure of the ranking, as a title. */
export function measureTitle({ measure }: PageRanking): string {
  return measure === 'tokens' ? 'Tokens' : 'Requests'
}

/** The chart of a ranking in a frame. */
export function drawRanking(columns: Columns, frame: Frame, measure: string): Html {
  return stackedColumns(columns, frame, `${measure} over time, by app; the table below has the figures`)
}

/** The columns of the chart: the page's first apps, and all others together. */
export function rankingColumns(data: PageData, query: PageRanking): Columns {
  return columnsOf(bandsOf(data), query, data.gaps)
}

function bandsOf({ rows, daily: totals }: PageData): readonly Band[] {
  const first = rows.slice(0, CHARTED)
  const bands = first.map(({ app, daily }) => ({ id: app.app_id, name: app.app_name, daily }))
  return withOthers(inked(bands), totals, 'all others')
}

/** Whether the data has no day of the window. */
export function isEmpty(window: DateWindow, { missing }: Gaps): boolean {
  return missing.size === daysOf(window)
}
