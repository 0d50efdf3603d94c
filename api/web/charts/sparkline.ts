import type { DateWindow } from '../../datasets/rankings/window.ts'
import { eachDay } from '../days.ts'
import { html, type Html } from '../html.ts'
import type { Daily } from './columns.ts'
import { unbroken } from './lines.ts'

const LINE = { width: 96, height: 24, padding: 2 }

/** The data of a sparkline: tokens per day of a window, without the `missing` days. */
interface Trend {
  readonly daily: Daily
  readonly window: DateWindow
  readonly missing: ReadonlySet<string>
}

/** A sparkline for a table row, broken at missing days; `label` is the text alternative. */
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
