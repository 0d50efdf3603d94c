/** Charts drawn as SVG on the server: nothing to load, nothing to run, and they print. */
import type { Band, Column } from './columns.ts'
import { eachDay, inWords } from './days.ts'
import { html, type Html } from './html.ts'
import { compact } from './numbers.ts'
import type { DailyTokens, DayRange } from './page-data.ts'

const LINE = { width: 96, height: 24, padding: 2 }
const CHART = { width: 960, height: 280, left: 56, bottom: 24, top: 8 }
const TICKS = 4
const DAY_LABELS = 6

/** A small line of tokens per day, for one row of the table; `label` is for those who cannot see it. */
export function sparkline(daily: DailyTokens, range: DayRange, label: string): Html {
  const values = eachDay(range).map((day) => Number(daily.get(day) ?? 0n))
  const highest = Math.max(1, ...values)
  const step = (LINE.width - 2 * LINE.padding) / Math.max(1, values.length - 1)
  const points = values.map((value, index) => {
    const x = LINE.padding + index * step
    const y = LINE.height - LINE.padding - (value / highest) * (LINE.height - 2 * LINE.padding)
    return `${x.toFixed(1)},${y.toFixed(1)}`
  })
  return html`<svg
    class="spark"
    viewBox="0 0 ${LINE.width} ${LINE.height}"
    width="${LINE.width}"
    height="${LINE.height}"
    role="img"
    aria-label="${label}"
  >
    <polyline points="${points.join(' ')}" />
  </svg>`
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

function stack(
  column: Column,
  bands: readonly Band[],
  { x, width, y }: { x: number; width: number; y: (value: bigint) => number },
): Html {
  let below = 0n
  const parts = column.values.map((value, index) => {
    const top = y(below + value)
    const bottom = y(below)
    below += value
    const name = bands[index]?.name ?? ''
    return html`<rect
      class="band band-${index}"
      x="${x.toFixed(1)}"
      y="${top.toFixed(1)}"
      width="${width.toFixed(1)}"
      height="${Math.max(0, bottom - top).toFixed(1)}"
    >
      <title>${inWords(column)}: ${name} ${compact(value)} of ${compact(column.total)} tokens</title>
    </rect>`
  })
  return html`<g>${parts}</g>`
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
