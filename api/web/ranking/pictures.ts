/** GET /chart.svg, /chart.png and /card.png: the page as pictures, for slides and link previews. */
import type { Columns } from '../charts/columns.ts'
import type { Frame } from '../charts/frame.ts'
import { boxSwatch } from '../charts/stacked.ts'
import { colourOf, drawPicture, PICTURE, shortName, toPng } from '../charts/picture.ts'
import { inWords } from '../days.ts'
import { html, type Html } from '../html.ts'
import { compact, counted, even } from '../numbers.ts'
import { queryString } from '../../http/respond.ts'
import type { SnapshotFacts } from '../../datasets/snapshots/open-snapshot.ts'
import type { View, ViewContext } from '../views.ts'
import { drawRanking, measureTitle, rankingColumns } from './chart.ts'
import { readPageData, type PageData, type PageRanking } from './page-data.ts'
import { parsePageParameters, resolvePage, type PageParameters } from './page-query.ts'
import { rankingTitle } from './title.ts'

const FRAME: Frame = { name: 'picture', width: 1120, height: 380, letters: 17, dates: 6, hovered: false }
const LEGEND = { top: 480, columns: 3, line: 28 } as const
const CARD = { rows: 5, top: 130, line: 82 } as const

/** The chart of the page. */
export const chartPictures = {
  svg: picture('chart.svg', 'image/svg+xml; charset=utf-8', drawChartPicture),
  png: picture('chart.png', 'image/png', async (data, query, snapshot) =>
    toPng(drawChartPicture(data, query, snapshot)),
  ),
} as const

/** The first five ranks, for link previews. */
export const card = picture('card.png', 'image/png', async (data, query, snapshot) =>
  toPng(drawCard(data, query, snapshot)),
)

type Draw = (data: PageData, query: PageRanking, snapshot: SnapshotFacts) => string | Promise<Buffer>

function picture(name: string, contentType: string, draw: Draw): View<PageParameters> {
  return {
    name,
    contentType,
    read: (request) => parsePageParameters(queryString(request)),
    async make({ snapshot }: ViewContext, asked) {
      const query = resolvePage(asked, snapshot)
      return await draw(await readPageData(snapshot, query), query, snapshot)
    },
  }
}

function drawChartPicture(data: PageData, query: PageRanking, snapshot: SnapshotFacts): string {
  const columns = rankingColumns(data, query)
  const measure = measureTitle(query)
  const { margin } = PICTURE
  return drawPicture({
    title: `${rankingTitle(query)}: ${measure.toLowerCase()} per ${columns.unit}, ${inWords(query)}`,
    content:
      data.total === 0n
        ? html`<text x="${margin}" y="120">${`No ${query.measure} in this window`}</text>`
        : html`<svg x="${margin}" y="80" width="${FRAME.width}" height="${FRAME.height}">
              ${drawRanking(columns, FRAME, measure)}
            </svg>
            ${legend(columns)}`,
    credits: creditsOf(snapshot),
  })
}

function legend({ bands }: Columns): Html[] {
  const width = FRAME.width / LEGEND.columns
  return bands.map((band, index) => {
    const x = PICTURE.margin + (index % LEGEND.columns) * width
    const y = LEGEND.top + Math.floor(index / LEGEND.columns) * LEGEND.line
    return html`<svg x="${x}" y="${y - 14}" width="16" height="16">${boxSwatch(band)}</svg>
      <text x="${x + 26}" y="${y}" font-size="17">${shortName(band.name)}</text>`
  })
}

function drawCard(data: PageData, query: PageRanking, snapshot: SnapshotFacts): string {
  const rows = data.rows.slice(0, CARD.rows)
  const isGrowth = query.sort === 'trending'
  const usage = rows.map(({ app, excess }) => {
    if (isGrowth) return excess ?? 0n
    return query.measure === 'tokens' ? BigInt(app.total_tokens) : app.total_requests
  })
  const most = usage.reduce((high, value) => (value > high ? value : high), 1n)
  const { width, margin } = PICTURE
  return drawPicture({
    title: `${rankingTitle(query)}, ${inWords(query)}`,
    content: html`<text class="tick" x="${margin}" y="94">
        App rankings: ${isGrowth ? 'tokens more than the previous average' : query.measure}, of
        ${compact(data.total)} by ${counted(data.apps, 'app')}
      </text>
      ${rows.map(({ app }, index) => {
        const y = CARD.top + index * CARD.line
        const own = usage[index] ?? 0n
        return html`<text x="${margin}" y="${y + 30}" font-size="28">${app.rank}</text>
          <text x="${margin + 60}" y="${y + 30}" font-size="28">${shortName(app.app_name)}</text>
          <text x="${width - margin}" y="${y + 30}" font-size="28" text-anchor="end"
            >${isGrowth ? '+' : ''}${even(own)}</text
          >
          <rect
            x="${margin + 60}"
            y="${y + 44}"
            width="${(Number((own * 1000n) / most) / 1000) * (width - 2 * margin - 60)}"
            height="12"
            rx="3"
            fill="${colourOf('accent')}"
          />`
      })}`,
    credits: creditsOf(snapshot),
  })
}

function creditsOf({ attribution, sources }: SnapshotFacts): string[] {
  return sources === null ? [attribution] : [attribution, sources]
}
