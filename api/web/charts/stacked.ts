/** Usage over time, stacked by app: drawn as SVG on the server, without a script, and printable. */
import { html, type Html } from '../html.ts'
import type { Ink } from './colours.ts'
import type { Column, Columns } from './columns.ts'
import { drawChart, linearAxis, plotOf, type Frame, type Plot } from './frame.ts'

/** Columns of bands in `frame`; a column without data is a grey field. */
export function stackedColumns(columns: Columns, frame: Frame, label: string): Html {
  const highest = columns.columns.reduce((most, { total }) => (total > most ? total : most), 1n)
  const axis = linearAxis(highest)
  const plot = plotOf(frame, axis, columns)
  const bands = columns.bands.map(
    (ink, band) =>
      html`<g class="band band-${ink.colour}" data-band="${band}">
        <path ${fillOf(ink)} d="${bandPath(columns.columns, band, plot)}" />
      </g>`,
  )
  return drawChart(plot, axis, html`${gaps(columns.columns, plot)}${bands}`, { label, columns })
}

/** The square of a band in a legend. It holds the stripe pattern that the drawings use, since it is always visible. */
export function boxSwatch(ink: Ink): Html {
  return html`<svg class="key band-${ink.colour}" viewBox="0 0 12 12" aria-hidden="true">
    ${ink.mark === 0 ? null : stripes(ink)}
    <rect width="12" height="12" rx="2" ${fillOf(ink)} />
  </svg>`
}

const STRIPE = 6

/** Stripes in the colour of the panel, at an angle per mark, for the marks that seven bands may need. */
function stripes(ink: Ink): Html {
  return html`<pattern
    id="${stripesId(ink)}"
    patternUnits="userSpaceOnUse"
    width="${STRIPE}"
    height="${STRIPE}"
    patternTransform="rotate(${Math.round((360 * ink.mark) / 7)})"
  >
    <rect width="${STRIPE}" height="${STRIPE}" />
    <rect class="stripe" width="${STRIPE}" height="2" />
  </pattern>`
}

/** The fill of a striped band; a plain one has the colour of its class. */
function fillOf(ink: Ink): Html | null {
  return ink.mark === 0 ? null : html`fill="url(#${stripesId(ink)})"`
}

function stripesId({ colour, mark }: Ink): string {
  return `stripes-${colour}-${mark}`
}

/** All boxes of a band as one path: many small elements would be larger. */
function bandPath(columns: readonly Column[], band: number, plot: Plot): string {
  return columns
    .flatMap(({ values }, index) => {
      const value = values[band] ?? 0n
      if (value === 0n) return []
      const below = values.slice(0, band).reduce((sum, each) => sum + each, 0n)
      return box(index, plot, { top: plot.y(below + value), bottom: plot.y(below) })
    })
    .join('')
}

/** As high as the chart, to be visible. */
function gaps(columns: readonly Column[], plot: Plot): Html | null {
  const boxes = columns.flatMap(({ missing, days }, index) =>
    missing === days ? box(index, plot, { top: plot.top, bottom: plot.bottom }) : [],
  )
  return boxes.length === 0 ? null : html`<path class="gap" d="${boxes.join('')}" />`
}

function box(
  index: number,
  { left, slot }: Plot,
  { top, bottom }: { readonly top: number; readonly bottom: number },
): string {
  const x = left + (index + 0.1) * slot
  return `M${x.toFixed(1)} ${top.toFixed(1)}h${(slot * 0.8).toFixed(1)}V${bottom.toFixed(1)}h${(-slot * 0.8).toFixed(1)}z`
}
