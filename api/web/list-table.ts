/** The table of a list: who is first, by how much, and since when. */
import { APPS_PATH } from '../paths.ts'
import { daysOf } from '../datasets/window.ts'
import { address } from './addresses.ts'
import { html, raw, type Html } from './html.ts'
import { RECENT_DAYS, type Day, type ListData, type Row } from './list-data.ts'
import { even, exact, percent, scaled, share } from './numbers.ts'
import { DRAWN, type List } from './parameters.ts'

/** What a cell is made from beside its row. */
interface Table {
  readonly list: List
  readonly data: ListData
  /** Usage of the whole list in its window. */
  readonly total: bigint
  /** Usage of the first row. */
  readonly most: bigint
  /** The snapshot that the visitor has chosen. */
  readonly asOf: string | undefined
}

interface Column {
  readonly title: string
  /** Its class: `n` aligns numbers, `wide` columns are left out on narrow windows. */
  readonly kind: string
  readonly cell: (row: Row, table: Table) => Html
}

const TICK: Column = {
  title: 'Draw',
  kind: 'tick',
  cell: ({ id, name }, { list, data }) => {
    const place = (list.drawn ?? data.rows.slice(0, DRAWN).map((row) => row.id)).indexOf(id)
    const mark = place === -1 ? null : raw(`checked class="c${place}"`)
    return html`<label><input type="checkbox" value="${id}" aria-label="Draw ${name}" ${mark} /></label>`
  },
}
const RANK: Column = { title: '#', kind: 'n rank', cell: ({ rank }) => html`${rank}` }
const CHANGE: Column = {
  title: 'Change',
  kind: 'change',
  cell: ({ rank, earlier }) => {
    if (earlier === null) return html`<span class="up">new</span>`
    if (earlier === rank) return html`<span title="rank unchanged">=</span>`
    const [kind, sign, places] = earlier > rank ? ['up', '▲', earlier - rank] : ['down', '▼', rank - earlier]
    return html`<span class="${kind}" title="${kind} from rank ${earlier} in the window before"
      >${sign}${places}</span
    >`
  },
}
const NAME: Column = {
  title: 'App',
  kind: 'name',
  cell: ({ id, name }, { asOf }) =>
    html`<a href="${address(`${APPS_PATH}/${id}`, { as_of: asOf })}" title="${name}"><bdi>${name}</bdi></a>`,
}
const MODEL: Column = {
  title: 'Model',
  kind: 'name',
  cell: ({ name }) => html`<bdi title="${name}">${name}</bdi>`,
}
const TAGS: Column = {
  title: 'Subcategory',
  kind: 'tags wide',
  cell: ({ tags }) => html`<span title="${tags.join(', ')}">${tags.join(', ')}</span>`,
}
const TOKENS: Column = { title: 'Tokens', kind: 'n', cell: ({ tokens }) => figure(tokens, 'tokens') }
const REQUESTS: Column = {
  title: 'Requests',
  kind: 'n',
  cell: ({ requests }) => figure(requests, 'requests'),
}
const SHARE: Column = {
  title: 'Share',
  kind: 'n share',
  cell: (row, { list, total, most }) => {
    const own = used(row, list)
    return html`${share(own, total)}<svg
        class="bar"
        viewBox="0 0 100 8"
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        <rect width="${scaled(own, most, 100)}" height="8" />
      </svg>`
  },
}
const GROWTH: Column = {
  title: 'Growth',
  kind: 'n growth',
  cell: ({ tokens, excess }) => {
    const more = excess ?? 0n
    const before = tokens - more
    return html`<span title="${exact(more)} tokens more than the average of the three windows before"
      >+${even(more)} <span class="up">${before > 0n ? percent(more, before) : 'new'}</span></span
    >`
  },
}
const RECENT: Column = {
  title: `${RECENT_DAYS} days`,
  kind: 'spark wide',
  cell: ({ daily }, { data }) => sparkline(daily, data.days.slice(-RECENT_DAYS)),
}

function columnsOf({ list, data }: Table): readonly Column[] {
  const [first, second] =
    list.measure === 'tokens'
      ? [TOKENS, { ...REQUESTS, kind: 'n wide' }]
      : [REQUESTS, { ...TOKENS, kind: 'n wide' }]
  return [
    TICK,
    RANK,
    ...(data.earlier.isCompared ? [CHANGE] : []),
    ...(list.subject === 'apps' ? [NAME, TAGS] : [MODEL]),
    first,
    list.sort === 'trending' ? GROWTH : SHARE,
    second,
    RECENT,
  ]
}

/** The table of a list, with its caption. */
export function listTable(list: List, data: ListData, asOf: string | undefined): Html {
  const days = data.days.slice(-daysOf(list))
  const [top] = data.rows
  const table: Table = {
    list,
    data,
    asOf,
    total: days.reduce((sum, { total }) => sum + total, 0n),
    most:
      top === undefined ? 0n : data.rows.reduce((most, row) => max(most, used(row, list)), used(top, list)),
  }
  const columns = columnsOf(table)
  return html`<table data-chosen="${list.subject}">
    <thead>
      <tr>
        ${columns.map(({ title, kind }) => html`<th scope="col" class="${kind}">${title}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${data.rows.map(
        (row) =>
          html`<tr>
            ${columns.map((column) => cellOf(column, row, table))}
          </tr> `,
      )}
    </tbody>
  </table>`
}

function cellOf({ kind, cell }: Column, row: Row, table: Table): Html {
  return kind === 'name'
    ? html`<th scope="row" class="name">${cell(row, table)}</th>`
    : html`<td class="${kind}">${cell(row, table)}</td>`
}

/** The usage that orders popular lists. */
function used({ tokens, requests }: Row, { measure }: List): bigint {
  return measure === 'tokens' ? tokens : requests
}

function max(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}

/** A short figure, with every digit on hover. */
function figure(value: bigint, unit: string): Html {
  return html`<span title="${exact(value)} ${unit}">${even(value)}</span>`
}

const SPARK = { width: 84, height: 20, margin: 1 } as const

/** The usage of the days as a line, which breaks where days are missing. */
function sparkline(daily: Row['daily'], days: readonly Day[]): Html {
  const { width, height, margin } = SPARK
  const top = days.reduce((most, { day }) => max(most, daily.get(day) ?? 0n), 1n)
  let isDrawing = false
  const path = days.map(({ day, coverage }, index) => {
    const isMissing = coverage === 'missing'
    const x = Math.round((index * width) / Math.max(days.length - 1, 1))
    const y = height - margin - scaled(daily.get(day) ?? 0n, top, height - 2 * margin)
    const step = isMissing ? '' : isDrawing ? `L${x} ${y}` : `M${x} ${y}h0`
    isDrawing = !isMissing
    return step
  })
  return html`<svg class="line" viewBox="0 0 ${width} ${height}" aria-hidden="true">
    <path d="${path.join('')}" />
  </svg>`
}
