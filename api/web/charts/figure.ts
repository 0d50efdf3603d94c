/** A chart with its legend, the figures of a day by pointer or keyboard, and a table of its days. */
import { inWords } from '../days.ts'
import { html, type Html } from '../html.ts'
import { compact, exact } from '../numbers.ts'
import { totalOf, type Band, type Column, type Columns } from './columns.ts'
import { NARROW, remark, WIDE, type Frame } from './frame.ts'

interface ChartFigure {
  readonly id: string
  /** The measure, such as `Tokens`. */
  readonly measure: string
  readonly caption: Html
  /** A note about special days. */
  readonly note: Html | null
  readonly columns: Columns
  readonly draw: (frame: Frame) => Html
  /** Renders a band's sample in the legend. */
  readonly swatch: (band: Band) => Html
  /** Whether the bands add up to a total; in a comparison they do not. */
  readonly isSum: boolean
}

/** The figure. The script replaces the total figures by the figures of one day. */
export function chartFigure(figure: ChartFigure): Html {
  const { id, measure, caption, note, columns, draw, swatch, isSum } = figure
  const { unit, bands } = columns
  return html`<figure id="${id}" class="figure">
    <figcaption>${caption}</figcaption>
    ${note} ${draw(WIDE)} ${draw(NARROW)}
    <div class="readout" data-unit="${unit}">
      <p class="moment">${measure} of the whole chart</p>
      <ul class="legend">
        ${bands.map(
          (band, index) =>
            html`<li data-band="${index}">
              ${swatch(band)}<bdi>${band.name}</bdi>
              <span class="value">${compact(totalOf(columns, index))}</span>
            </li>`,
        )}
      </ul>
    </div>
    ${table(measure, columns, isSum)}
  </figure>`
}

/** The figures of the chart as a table. */
function table(measure: string, { unit, bands, columns }: Columns, isSum: boolean): Html {
  const hasTotal = isSum && bands.length > 1
  return html`<details>
    <summary>The chart as a table</summary>
    <div class="scroll" role="region" aria-label="${measure} per ${unit}" tabindex="0">
      <table>
        <thead>
          <tr>
            <th scope="col">${unit === 'day' ? 'Day' : 'Week'}</th>
            ${bands.map(({ name }) => html`<th scope="col" class="number"><bdi>${name}</bdi></th>`)}
            ${hasTotal ? html`<th scope="col" class="number">Together</th>` : null}
          </tr>
        </thead>
        <tbody>
          ${columns.map((column) => row(column, hasTotal))}
        </tbody>
      </table>
    </div>
  </details>`
}

function row(column: Column, hasTotal: boolean): Html {
  const values = hasTotal ? [...column.values, column.total] : column.values
  const cells =
    column.missing === column.days
      ? values.map(() => html`<td class="number">–</td>`)
      : values.map((value) => html`<td class="number">${exact(value)}</td>`)
  return html`<tr>
    <th scope="row" class="days">${inWords(column)}${remark(column)}</th>
    ${cells}
  </tr>`
}
