/** A chart of several lines, drawn as SVG on the server. */
import { html, isolated, type Html } from '../html.ts'
import type { Ink } from './colours.ts'
import type { Column, Columns } from './columns.ts'
import { drawChart, linearAxis, plotOf, type Axis, type Frame } from './frame.ts'

export type Scale = 'linear' | 'log'

/** Lines over time; on a logarithmic scale a day of 0 tokens breaks a line. */
export function drawLines(columns: Columns, scale: Scale, frame: Frame): Html {
  const values = columns.columns.flatMap((column) => column.values)
  const axis = scale === 'log' ? logarithmicAxis(values) : linearAxis(maximum(values))
  const plot = plotOf(frame, axis, columns)
  const point = (band: number) => (column: Column, index: number) => {
    const value = column.values[band] ?? 0n
    if (column.missing === column.days || (scale === 'log' && value === 0n)) return undefined
    return `${(plot.left + (index + 0.5) * plot.slot).toFixed(1)},${plot.y(value).toFixed(1)}`
  }
  const lines = columns.bands.map(
    (own, band) =>
      html`<g class="line band-${own.colour}" data-band="${band}" ${dashes(own)}>
        <title>${isolated(own.name)}</title>
        ${unbroken(columns.columns.map(point(band))).map((points) => html`<polyline points="${points.join(' ')}" />`)}
      </g>`,
  )
  const label = `Tokens per ${columns.unit} of ${columns.bands.map(({ name }) => isolated(name)).join(', ')}`
  return drawChart(plot, axis, html`${lines}`, { label, columns })
}

/** A line sample for a legend. */
export function lineSwatch(ink: Ink): Html {
  return html`<svg class="key line band-${ink.colour}" viewBox="0 0 24 12" aria-hidden="true" ${dashes(ink)}>
    <line x2="24" y1="6" y2="6" />
  </svg>`
}

/** The dashes of a line, for the marks that five lines may need; a plain line has none. */
function dashes({ mark }: Ink): Html | null {
  return mark === 0 ? null : html`stroke-dasharray="${12 / mark} 3"`
}

/** The parts of a line between its gaps; a single point is repeated, since a line of one point is not drawn. */
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

function logarithmicAxis(values: readonly bigint[]): Axis {
  const positive = values.filter((value) => value > 0n)
  const least = positive.reduce((low, value) => (value < low ? value : low), positive[0] ?? 1n)
  const first = least.toString().length - 1
  // The power of ten that no value exceeds.
  const last = Math.max(first + 1, (maximum(values) - 1n).toString().length)
  return {
    share: (value) => (Math.log10(Number(value)) - first) / (last - first),
    ticks: Array.from({ length: last - first + 1 }, (_, index) => 10n ** BigInt(first + index)),
  }
}

function maximum(values: readonly bigint[]): bigint {
  return values.reduce((most, value) => (value > most ? value : most), 1n)
}
