/** The frame of all charts: a fixed size with an axis, dates below it and a hover field per day. */
import { inWords } from '../days.ts'
import { html, isolated, type Html } from '../html.ts'
import { compact } from '../numbers.ts'
import type { Column, Columns } from './columns.ts'

/** A drawing area in its own units. */
export interface Frame {
  readonly name: 'wide' | 'narrow' | 'picture'
  readonly width: number
  readonly height: number
  readonly letters: number
  /** Dates below the axis. */
  readonly dates: number
  /** Whether hovering shows the figures of a day. */
  readonly hovered: boolean
}

/** The page holds both drawings of a chart, and shows one by width. */
export const WIDE: Frame = { name: 'wide', width: 960, height: 280, letters: 13, dates: 6, hovered: true }
export const NARROW: Frame = {
  name: 'narrow',
  width: 360,
  height: 260,
  letters: 12,
  dates: 3,
  hovered: false,
}

/** Positions of values on the axis, from 0 at the bottom to 1 at the top, and the marked values. */
export interface Axis {
  readonly share: (value: bigint) => number
  readonly ticks: readonly bigint[]
}

/** Positions inside a frame. */
export interface Plot {
  readonly frame: Frame
  readonly left: number
  readonly top: number
  readonly bottom: number
  /** The width of a column with its margin. */
  readonly slot: number
  /** The y coordinate of a value, from the top. */
  readonly y: (value: bigint) => number
}

const TICKS = 4n

/** Lays out a chart; the axis is as wide as its longest figure. */
export function plotOf(frame: Frame, axis: Axis, { columns }: Columns): Plot {
  const longest = Math.max(...axis.ticks.map((tick) => compact(tick).length))
  const left = 10 + Math.ceil(longest * frame.letters * 0.62)
  const top = frame.letters
  const bottom = frame.height - 2 * frame.letters
  return {
    frame,
    left,
    top,
    bottom,
    slot: (frame.width - left) / Math.max(1, columns.length),
    y: (value) => top + (1 - axis.share(value)) * (bottom - top),
  }
}

/** An axis from 0 that includes `highest`. */
export function linearAxis(highest: bigint): Axis {
  const head = niceCeiling(highest)
  return {
    share: (value) => Number((value * 10_000n) / head) / 10_000,
    ticks: Array.from({ length: Number(TICKS) + 1 }, (_, index) => (head * BigInt(index)) / TICKS),
  }
}

/** The next of a few round multiples of a power of ten; a quarter of it, the axis step, is whole and round. */
export function niceCeiling(value: bigint): bigint {
  const power = 10n ** BigInt(Math.max(1, value.toString().length - 1))
  const steps = [4n, 8n, 12n, 16n, 20n, 24n, 32n, 40n, 60n, 80n, 100n].map((tenths) => (power * tenths) / 10n)
  return steps.find((step) => step >= value) ?? value
}

/** The whole drawing: grid and dates, the chart's content, and a field over each column with its figures. */
export function drawChart(
  plot: Plot,
  axis: Axis,
  content: Html,
  what: { label: string; columns: Columns },
): Html {
  const { frame } = plot
  const { columns } = what.columns
  return html`<svg
    class="chart ${frame.name}"
    viewBox="0 0 ${frame.width} ${frame.height}"
    role="img"
    aria-label="${what.label}"
    font-size="${frame.letters}"
  >
    ${axis.ticks.map((tick) => gridLine(tick, plot))} ${dates(columns, plot)} ${content}
    ${columns.map((column, index) => (column.restated > 0 ? restatedMark(index, plot) : null))}
    <g class="fields">${columns.map((column, index) => field(column, index, { plot, all: what.columns }))}</g>
  </svg>`
}

function gridLine(value: bigint, { frame, left, y }: Plot): Html {
  const at = y(value).toFixed(1)
  return html`<line class="grid" x1="${left}" x2="${frame.width}" y1="${at}" y2="${at}" /><text
      class="tick"
      x="${left - 6}"
      y="${at}"
      dy="0.35em"
      text-anchor="end"
    >
      ${compact(value)}</text
    >`
}

/** The first and the last date stay inside the frame. */
function dates(columns: readonly Column[], { frame, left, slot }: Plot): Html[] {
  const every = Math.max(1, Math.ceil(columns.length / frame.dates))
  const half = frame.letters * 0.31 * 10
  return columns.flatMap(({ start }, index) => {
    if (index % every !== 0) return []
    const middle = left + (index + 0.5) * slot
    const x = Math.min(frame.width - half, Math.max(left + half * 0.5, middle))
    return html`<text class="tick" x="${x.toFixed(1)}" y="${frame.height - 4}" text-anchor="middle"
      >${start}</text
    >`
  })
}

/** A mark below a column with restated days. */
function restatedMark(index: number, { left, slot, bottom }: Plot): Html {
  const x = left + (index + 0.5) * slot
  return html`<circle class="restated" cx="${x.toFixed(1)}" cy="${(bottom + 5).toFixed(1)}" r="2.5" />`
}

function field(
  column: Column,
  index: number,
  { plot, all }: { readonly plot: Plot; readonly all: Columns },
): Html {
  const { frame, left, top, bottom, slot } = plot
  return html`<rect
    x="${(left + index * slot).toFixed(1)}"
    y="${top}"
    width="${slot.toFixed(1)}"
    height="${bottom - top}"
    >${frame.hovered ? html`<title>${figuresOf(column, all)}</title>` : null}</rect
  >`
}

/** The figures of a column in words, a line per band. */
function figuresOf(column: Column, { bands }: Columns): string {
  const head = `${inWords(column)}${remark(column)}`
  if (column.missing === column.days) return head
  return [
    `${head}: ${compact(column.total)}`,
    ...bands.map(({ name }, index) => `${isolated(name)} ${compact(column.values[index] ?? 0n)}`),
  ].join('\n')
}

/** A remark on the days of a column. */
export function remark({ days, missing, restated }: Column): string {
  if (missing === days) return ' (no data)'
  const notes = [
    ...(missing === 0 ? [] : [`${missing} of ${days} days missing`]),
    ...(restated === 0 ? [] : [days === 1 ? 'restated' : `${restated} of ${days} days restated`]),
  ]
  return notes.length === 0 ? '' : ` (${notes.join(', ')})`
}
