/** A chart of several lines, drawn as SVG on the server. */
import type { DateWindow } from '../datasets/rankings/window.ts'
import { eachDay } from './days.ts'
import { html, isolated, type Html } from './html.ts'
import { compact } from './numbers.ts'
import { niceCeiling, unbroken } from './charts.ts'

export type Scale = 'linear' | 'log'

/** A line: tokens per day. */
interface Line {
  readonly name: string
  readonly daily: ReadonlyMap<string, bigint>
}

interface LineChart {
  readonly window: DateWindow
  /** Days without data, where lines are broken. */
  readonly missing: ReadonlySet<string>
  readonly scale: Scale
}

const CHART = { width: 960, height: 320, left: 64, bottom: 24, top: 8 }
const DAY_LABELS = 6

/** Lines over time; on a logarithmic scale a day of 0 tokens breaks a line, since 0 has no place there. */
export function drawLines(lines: readonly Line[], { window, missing, scale }: LineChart): Html {
  const days = eachDay(window)
  const axis = scale === 'log' ? logarithmic(lines) : linear(lines)
  const step = (CHART.width - CHART.left) / Math.max(1, days.length - 1)
  const x = (index: number) => CHART.left + index * step
  const y = (value: bigint) => CHART.top + (1 - axis.share(value)) * (CHART.height - CHART.top - CHART.bottom)
  const point = (line: Line) => (day: string, index: number) => {
    const value = line.daily.get(day) ?? 0n
    if (missing.has(day) || (scale === 'log' && value === 0n)) return undefined
    return `${x(index).toFixed(1)},${y(value).toFixed(1)}`
  }
  return html`<svg
    class="chart lines"
    viewBox="0 0 ${CHART.width} ${CHART.height}"
    role="img"
    aria-label="Tokens per day of ${lines.map(({ name }) => isolated(name)).join(', ')}"
  >
    ${axis.ticks.map((value) => gridLine(value, y(value)))} ${dayLabels(days, x)}
    ${lines.map(
      (line, index) =>
        html`<g class="line band-${index}">
          <title>${isolated(line.name)}</title>
          ${unbroken(days.map(point(line))).map((points) => html`<polyline points="${points.join(' ')}" />`)}
        </g>`,
    )}
  </svg>`
}

/** Where values stand on the axis, from 0 at its foot to 1 at its head, and the values that are marked. */
interface Axis {
  readonly share: (value: bigint) => number
  readonly ticks: readonly bigint[]
}

const TICKS = 4n

function linear(lines: readonly Line[]): Axis {
  const highest = niceCeiling(maximum(lines))
  return {
    share: (value) => Number((value * 10_000n) / highest) / 10_000,
    ticks: Array.from({ length: Number(TICKS) + 1 }, (_, index) => (highest * BigInt(index)) / TICKS),
  }
}

function logarithmic(lines: readonly Line[]): Axis {
  const values = lines.flatMap(({ daily }) => [...daily.values()]).filter((value) => value > 0n)
  const least = values.reduce((low, value) => (value < low ? value : low), values[0] ?? 1n)
  const first = least.toString().length - 1
  // The power of ten that no value exceeds.
  const last = Math.max(first + 1, (maximum(lines) - 1n).toString().length)
  return {
    share: (value) => (Math.log10(Number(value)) - first) / (last - first),
    ticks: Array.from({ length: last - first + 1 }, (_, index) => 10n ** BigInt(first + index)),
  }
}

function maximum(lines: readonly Line[]): bigint {
  return lines
    .flatMap(({ daily }) => [...daily.values()])
    .reduce((most, value) => (value > most ? value : most), 1n)
}

function gridLine(value: bigint, at: number): Html {
  return html`<line
      class="grid"
      x1="${CHART.left}"
      x2="${CHART.width}"
      y1="${at.toFixed(1)}"
      y2="${at.toFixed(1)}"
    />
    <text
      class="tick"
      x="${CHART.left - 8}"
      y="${at.toFixed(1)}"
      text-anchor="end"
      dominant-baseline="middle"
    >
      ${compact(value)}
    </text>`
}

function dayLabels(days: readonly string[], x: (index: number) => number): Html[] {
  const every = Math.max(1, Math.ceil(days.length / DAY_LABELS))
  return days.flatMap((day, index) =>
    index % every === 0
      ? html`<text class="tick" x="${x(index).toFixed(1)}" y="${CHART.height - 6}" text-anchor="start"
          >${day}</text
        >`
      : [],
  )
}
