/** Usage over time, stacked by app: drawn as SVG on the server, so that it needs no script and prints. */
import { html, type Html } from '../html.ts'
import type { Column, Columns } from './columns.ts'
import { drawChart, linearAxis, plotOf, type Frame, type Plot } from './frame.ts'

/** Columns of bands in `frame`; a column without data is a grey field. */
export function stackedColumns(columns: Columns, frame: Frame, label: string): Html {
  const highest = columns.columns.reduce((most, { total }) => (total > most ? total : most), 1n)
  const axis = linearAxis(highest)
  const plot = plotOf(frame, axis, columns)
  const bands = columns.bands.map(
    ({ key }, band) => html`<path class="band band-${key}" d="${bandPath(columns.columns, band, plot)}" />`,
  )
  return drawChart(plot, axis, html`${gaps(columns.columns, plot)}${bands}`, { label, columns })
}

/** All boxes of a band as one path: many small elements would weigh more. */
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

/** Stands as high as the chart, so that it is seen. */
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
