/** Files of an app page: its history as CSV, a chart and a badge to embed. */
import type { Columns } from '../../../pipeline/contract/dataset.ts'
import { encodeCsv } from '../../datasets/formats/encode-csv.ts'
import { FORMATS } from '../../datasets/formats/formats.ts'
import { windowUpTo } from '../../datasets/rankings/window.ts'
import type { ReadableSnapshot } from '../../datasets/snapshots/open-snapshot.ts'
import { inked } from '../charts/colours.ts'
import { colourOf } from '../charts/picture.ts'
import { eachDay } from '../days.ts'
import { html, isolated } from '../html.ts'
import { compact } from '../numbers.ts'
import type { View } from '../views.ts'
import { readApp, readHistory, readRanks } from './app-data.ts'
import { readAppRequest, type AppRequest } from './parameters.ts'

const SVG = 'image/svg+xml; charset=utf-8'
const COLUMNS = {
  day: 'text',
  requests: 'integer',
  prompt_tokens: 'integer',
  completion_tokens: 'integer',
  total_tokens: 'decimal',
} as const satisfies Columns

/** The usage of an app by day, oldest first; a day without usage has no row. */
export const historyFile: View<AppRequest> = {
  name: 'history.csv',
  contentType: FORMATS.csv.contentType,
  read: readAppRequest,
  async make({ snapshot }, { id }) {
    const app = await readApp(snapshot, id)
    return encodeCsv({ columns: COLUMNS, rows: await readHistory(snapshot, app.id) })
  },
}

/** Colours are in the drawing itself, since no style sheet applies where it is embedded. */
const INK = colourOf('text')
const PAPER = colourOf('panel')
const BADGE_BAR = colourOf('accent')

const CHART = { width: 480, height: 160, top: 28, bottom: 20, days: 30 }

/** The last 30 days of an app as columns. */
export const chartFile: View<AppRequest> = {
  name: 'chart.svg',
  contentType: SVG,
  read: readAppRequest,
  async make({ snapshot }, { id }) {
    const app = await readApp(snapshot, id)
    const daily = await recentTokens(snapshot, app.id)
    const days = eachDay(windowUpTo(snapshot.dataThrough, CHART.days))
    const highest = [...daily.values()].reduce((most, value) => (value > most ? value : most), 1n)
    const slot = CHART.width / CHART.days
    const colour = colourOf(`band-${inked([app])[0]?.colour}`)
    const bars = days.map((day, index) => {
      const tokens = daily.get(day) ?? 0n
      const height = Number((tokens * 1000n) / highest) * ((CHART.height - CHART.top - CHART.bottom) / 1000)
      const y = CHART.height - CHART.bottom - height
      return html`<rect
        x="${(index * slot + 1).toFixed(1)}"
        y="${y.toFixed(1)}"
        width="${(slot - 2).toFixed(1)}"
        height="${height.toFixed(1)}"
        fill="${colour}"
        ><title>${day}: ${compact(tokens)} tokens</title></rect
      >`
    })
    return html`<svg
      xmlns="http://www.w3.org/2000/svg"
      viewBox="0 0 ${CHART.width} ${CHART.height}"
      role="img"
      width="${CHART.width}"
      height="${CHART.height}"
      font-family="sans-serif"
      font-size="12"
      fill="${INK}"
    >
      <title>${isolated(app.name)}: tokens per day, last ${CHART.days} days of data</title>
      <rect width="100%" height="100%" fill="${PAPER}" />
      <text x="8" y="18" font-size="14">${isolated(app.name)}</text>
      <text x="${CHART.width - 8}" y="18" text-anchor="end">up to ${compact(highest)} tokens a day</text>
      ${bars}
      <text x="8" y="${CHART.height - 6}">${snapshot.attribution}</text>
    </svg>`.html
  },
}

const BADGE = { height: 20, label: 96, value: 112 }

/** The weekly rank of an app, to embed. */
export const badgeFile: View<AppRequest> = {
  name: 'badge.svg',
  contentType: SVG,
  read: readAppRequest,
  async make({ snapshot }, { id }) {
    const app = await readApp(snapshot, id)
    const rank = (await readRanks(snapshot, app.id))[0]?.ranks.popular
    const value = rank === undefined ? 'not ranked' : `rank ${rank} this week`
    const width = BADGE.label + BADGE.value
    return html`<svg
      xmlns="http://www.w3.org/2000/svg"
      viewBox="0 0 ${width} ${BADGE.height}"
      role="img"
      width="${width}"
      height="${BADGE.height}"
      font-family="sans-serif"
      font-size="11"
      fill="${PAPER}"
    >
      <title>${isolated(app.name)}: ${value}, as of ${snapshot.asOf}</title>
      <rect width="${width}" height="${BADGE.height}" rx="3" fill="${INK}" />
      <rect x="${BADGE.label}" width="${BADGE.value}" height="${BADGE.height}" rx="3" fill="${BADGE_BAR}" />
      <text x="${BADGE.label / 2}" y="14" text-anchor="middle">App Rankings</text>
      <text x="${BADGE.label + BADGE.value / 2}" y="14" text-anchor="middle">${value}</text>
    </svg>`.html
  },
}

async function recentTokens(snapshot: ReadableSnapshot, id: bigint): Promise<ReadonlyMap<string, bigint>> {
  const first = windowUpTo(snapshot.dataThrough, CHART.days).start
  const history = await readHistory(snapshot, id)
  return new Map(
    history
      .filter(({ day }) => day >= first)
      .map(({ day, total_tokens }) => [day, BigInt(total_tokens)] as const),
  )
}
