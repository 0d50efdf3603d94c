/** Charts drawn as SVG on the server: nothing to load, nothing to run, and they print. */
import type { Band, Column } from './ranking/columns.ts'
import type { DateWindow } from '../datasets/rankings/window.ts'
import { eachDay, inWords } from './days.ts'
import { html, isolated, type Html } from './html.ts'
import { compact } from './numbers.ts'
import type { DailyTokens } from './ranking/page-data.ts'

const LINE = { width: 96, height: 24, padding: 2 }
const CHART = { width: 960, height: 280, left: 56, bottom: 24, top: 8 }
const TICKS = 4
const DAY_LABELS = 6

/** What a small line shows: tokens per day of a window, without the days that are `missing`. */
interface Trend {
  readonly daily: DailyTokens
  readonly window: DateWindow
  readonly missing: ReadonlySet<string>
}

/** A small line for one row of the table, broken where days are missing; `label` is for those who cannot see it. */
export function sparkline({ daily, window, missing }: Trend, label: string): Html {
  const days = eachDay(window)
  const highest = Math.max(1, ...days.map((day) => Number(daily.get(day) ?? 0n)))
  const step = (LINE.width - 2 * LINE.padding) / Math.max(1, days.length - 1)
  const point = (day: string, index: number) => {
    const x = LINE.padding + index * step
    const share = Number(daily.get(day) ?? 0n) / highest
    const y = LINE.height - LINE.padding - share * (LINE.height - 2 * LINE.padding)
    return `${x.toFixed(1)},${y.toFixed(1)}`
  }
  const parts = unbroken(days.map((day, index) => (missing.has(day) ? undefined : point(day, index))))
  return html`<svg
    class="spark"
    viewBox="0 0 ${LINE.width} ${LINE.height}"
    width="${LINE.width}"
    height="${LINE.height}"
    role="img"
    aria-label="${label}"
  >
    ${parts.map((points) => html`<polyline points="${points.join(' ')}" />`)}
  </svg>`
}

/** The parts of a line between its gaps; a point alone is there twice, since a line of one point is not drawn. */
export function unbroken(points: readonly (string | undefined)[]): string[][] {
  const parts: string[][] = [[]]
  for (const point of points) {
    if (point === undefined) parts.push([])
    else parts.at(-1)?.push(point)
  }
  return parts
    .filter(({ length }) => length > 0)
    .map((part) => (part.length === 1 ? [...part, ...part] : part))
}

/** Tokens over time, stacked by app. */
export function stackedColumns(bands: readonly Band[], columns: readonly Column[]): Html {
  const highest = niceCeiling(columns.reduce((most, { total }) => (total > most ? total : most), 1n))
  const height = CHART.height - CHART.top - CHART.bottom
  const y = (value: bigint) => CHART.top + height - Number((value * 10_000n) / highest) * (height / 10_000)
  const slot = (CHART.width - CHART.left) / Math.max(1, columns.length)
  const stacks = columns.map((column, index) => {
    const x = CHART.left + index * slot + slot * 0.1
    return stack(column, bands, { x, width: slot * 0.8, y })
  })
  return html`<svg
    class="chart"
    viewBox="0 0 ${CHART.width} ${CHART.height}"
    role="img"
    aria-label="Tokens over time, by app; the table below has the figures"
  >
    ${gridLines(highest, y)} ${stacks} ${dayLabels(columns, slot)}
  </svg>`
}

/** Where a column stands. */
interface Place {
  readonly x: number
  readonly width: number
  /** The height of a number of tokens, from above. */
  readonly y: (value: bigint) => number
}

function stack(column: Column, bands: readonly Band[], place: Place): Html {
  const days = eachDay(column).length
  if (column.missing === days) return gap(column, place)
  const note = column.missing === 0 ? '' : `, ${column.missing} of ${days} days missing`
  let below = 0n
  const parts = column.values.map((value, index) => {
    const top = place.y(below + value)
    const bottom = place.y(below)
    below += value
    const { key = '', name = '' } = bands[index] ?? {}
    const figures = `${isolated(name)} ${compact(value)} of ${compact(column.total)} tokens`
    return bar(`band band-${key}`, { ...place, top, bottom }, `${inWords(column)}: ${figures}${note}`)
  })
  return html`<g>${parts}</g>`
}

/** Stands as high as the chart, so that it is seen, and found by a pointer. */
function gap(column: Column, place: Place): Html {
  const box = { ...place, top: CHART.top, bottom: CHART.height - CHART.bottom }
  return bar('gap', box, `${inWords(column)}: no data`)
}

interface Box {
  readonly x: number
  readonly width: number
  readonly top: number
  readonly bottom: number
}

function bar(kind: string, { x, width, top, bottom }: Box, title: string): Html {
  return html`<rect
    class="${kind}"
    x="${x.toFixed(1)}"
    y="${top.toFixed(1)}"
    width="${width.toFixed(1)}"
    height="${Math.max(0, bottom - top).toFixed(1)}"
  >
    <title>${title}</title>
  </rect>`
}

function gridLines(highest: bigint, y: (value: bigint) => number): Html[] {
  return Array.from({ length: TICKS + 1 }, (_, index) => {
    const value = (highest * BigInt(index)) / BigInt(TICKS)
    const at = y(value).toFixed(1)
    return html`<line class="grid" x1="${CHART.left}" x2="${CHART.width}" y1="${at}" y2="${at}" />
      <text class="tick" x="${CHART.left - 8}" y="${at}" text-anchor="end" dominant-baseline="middle">
        ${compact(value)}
      </text>`
  })
}

function dayLabels(columns: readonly Column[], slot: number): Html[] {
  const every = Math.max(1, Math.ceil(columns.length / DAY_LABELS))
  return columns.flatMap(({ start }, index) =>
    index % every === 0
      ? html`<text
          class="tick"
          x="${(CHART.left + (index + 0.5) * slot).toFixed(1)}"
          y="${CHART.height - 6}"
          text-anchor="middle"
        >
          ${start}
        </text>`
      : [],
  )
}

/** The next of a few round multiples of a power of ten; a quarter of it, the step of the axis, is round too. */
export function niceCeiling(value: bigint): bigint {
  const power = 10n ** BigInt(Math.max(0, value.toString().length - 1))
  const steps = [10n, 12n, 16n, 20n, 24n, 32n, 40n, 60n, 80n, 100n].map((tenths) => (power * tenths) / 10n)
  return steps.find((step) => step >= value) ?? value
}
