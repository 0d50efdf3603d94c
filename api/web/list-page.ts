/** GET / and /models (CONTRACT 4.6): a list with its chart, by the same rules as the API. */
import { daysBetween, describeRange, FLOOR_DATE } from '../../pipeline/contract/calendar.ts'
import { LICENCE } from '../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../pipeline/contract/files.ts'
import { CATEGORIES, subcategoriesOf, type Category } from '../../pipeline/contract/taxonomy.ts'
import { grouped, pluralize } from '../../pipeline/program/terminal.ts'
import { MAX_OFFSET } from '../datasets/rankings.ts'
import type { SnapshotEntry } from '../datasets/snapshots/catalogue.ts'
import type { SnapshotFacts } from '../datasets/snapshots/facts.ts'
import { daysOf, windowsBefore, type DateWindow } from '../datasets/window.ts'
import { APPS_PATH, METHOD_PATH, REFERENCE_PATH } from '../paths.ts'
import { chartFigure, figure, renderDocument, type View, type ViewContext } from './document.ts'
import { address, form, HTML, markup, raw, type Given, type Html, type Piece } from './html.ts'
import { seriesOf } from './list-files.ts'
import {
  ADDRESSES,
  LISTS,
  readList,
  RECENT_DAYS,
  WINDOWS,
  type Item,
  type List,
  type ListParameters,
  type Subject,
} from './list.ts'

/** The inputs of the parts of a page. */
type Page = {
  readonly context: ViewContext
  readonly list: List
  readonly parameters: ListParameters
}

/** The page of a list. */
export function listView(subject: Subject): View {
  return {
    contentType: HTML,
    parameters: LISTS[subject],
    async make(context, parameters: ListParameters) {
      return renderPage({ context, parameters, list: await readList(context.snapshot, subject, parameters) })
    },
  }
}

function renderPage(page: Page): string {
  const { context, list, parameters } = page
  const { subject, order, measure, offset, limit } = list
  const path = ADDRESSES[subject].page
  const range = describeRange({ from: list.start_date, to: list.end_date })
  const kind = order === 'trending' ? 'Trending' : 'Popular'
  const title = [kind, list.subcategory ?? list.category, subject].filter((word) => word !== null).join(' ')
  const turn = (rel: string, label: string, to: number) =>
    markup`<a rel="${rel}" href="${address(path, { ...parameters, offset: to })}">${label}</a>`
  const next = offset + limit
  return renderDocument({
    title: `${title}, ${range}`,
    heading: subject === 'apps' ? 'App rankings' : 'Model rankings',
    context,
    path,
    parameters,
    series: seriesOf(list),
    controls: controls(page),
    main: markup`${chartFigure(`${measure} per day, ${range}`, subject)}
      <section id="list">
        <p>${range}: ${caption(page)} · ${dataLinks(page)}</p>
        <div id="rows">${list.items.some((item) => item.in_page) ? ranking(page) : 'Nothing is in this list.'}</div>
        <p>
          ${offset > 0 && turn('prev', 'Previous', Math.max(0, offset - limit))}
          ${next <= MAX_OFFSET && next < list.ranks && turn('next', 'Next', next)}
        </p>
        <p>${note(page)} <a href="${METHOD_PATH}">Method</a></p>
      </section>`,
    foot: foot(page),
  })
}

const GROWTH =
  'Growth: the tokens of the window minus the average of the three windows of equal length before it'

/** What the windows before, which the list is compared with, lack. */
function note({ list, context: { snapshot } }: Page): string {
  const isTrending = list.order === 'trending'
  const before = windowsBefore(list, isTrending ? 3 : 1)
  const lacking = daysWithout(snapshot, before)
  const lacks = `the data lacks ${lacking} of the ${pluralize(daysOf(before), 'day')} before`
  if (isTrending) return lacking === 0 ? `${GROWTH}.` : `${GROWTH}; ${lacks}, which count as zero.`
  if (lacking === 0) return ''
  return `The change of rank is ${isCompared(snapshot, list) ? 'uncertain' : 'not shown'}: ${lacks}.`
}

/** Whether the ranks are compared with the window before: if the data has most of its days. */
function isCompared(snapshot: SnapshotFacts, window: DateWindow): boolean {
  const before = windowsBefore(window, 1)
  return 2 * daysWithout(snapshot, before) < daysOf(before)
}

/** Number of days of a window without delivered usage, including those before the first day of the data. */
function daysWithout({ first_day, days_missing }: SnapshotFacts, window: DateWindow): number {
  const { start_date, end_date } = window
  const before = Math.min(Math.max(daysBetween(start_date, first_day), 0), daysOf(window))
  return before + days_missing.filter((day) => day >= start_date && day <= end_date).length
}

/** Every choice: links and forms, which work without a script. */
function controls({ context, list, parameters }: Page): Html {
  const { subject } = list
  const { days, start_date, end_date, as_of, chart } = parameters
  const shared = { days, start_date, end_date, as_of, chart }
  const kept = { ...parameters, offset: null }
  const window = { days: null, start_date: null, end_date: null }
  const max = context.snapshot.data_through
  const choice = (text: string, isChosen: boolean, changes: Given) =>
    link(text, isChosen, ADDRESSES[subject].page, { ...kept, ...changes })
  const ofList = (text: string, each: Subject) => link(text, each === subject, ADDRESSES[each].page, shared)
  const orders = LISTS[subject].sort.schema.options.map((each) => {
    return choice(ORDERS[each], each === list.order, { sort: each === 'popular' ? null : each })
  })
  const windows = WINDOWS.map((each) => {
    return choice(`${each} d`, each === daysOf(list) && list.end_date === max, { ...window, days: each })
  })
  const date = (name: 'start_date' | 'end_date', label: string) =>
    markup`<input type="date" name="${name}" aria-label="${label}" value="${list[name]}" min="${FLOOR_DATE}" max="${max}" />`
  const dates = markup`${date('start_date', 'First day')} ${date('end_date', 'Last day')}
    <button>Show</button>`
  return markup`<section id="controls" aria-label="What is shown">
    <nav aria-label="Ranking of">${ofList('Apps', 'apps')}${ofList('Models', 'models')}</nav>
    <nav aria-label="Order">${orders}</nav>
    <nav aria-label="Window">${windows}</nav>
    <nav aria-label="Chart">
      ${choice('Stacked', chart !== 'lines', { chart: null })}${choice('Lines', chart === 'lines', { chart: 'lines' })}
    </nav>
    ${subject === 'apps' && form(null, { ...kept, category: null, subcategory: null }, categories(list))}
    ${form(null, { ...kept, ...window }, dates)}
  </section>`
}

function link(text: string, isChosen: boolean, path: string, parameters: Given): Html {
  return markup`<a href="${address(path, parameters)}" ${isChosen && raw('aria-current="true"')}>${text}</a>`
}

const ORDERS = { popular: 'Popular', trending: 'Trending', requests: 'By requests' } as const

function categories({ category, subcategory }: List): Html {
  const chosen = subcategory ?? category ?? ''
  const option = (value: string, label = value) =>
    markup`<option value="${value}" ${value === chosen && raw('selected')}>${label}</option>`
  const group = (each: Category) => [
    option(each),
    subcategoriesOf(each).map((tag) => option(tag, `\u00a0\u00a0${tag}`)),
  ]
  return markup`<select name="category" aria-label="Category; a choice applies at once">
      ${option('', 'All apps')} ${CATEGORIES.map(group)}
    </select>
    <noscript><button>Apply</button></noscript>`
}

/** The totals of the window, and the days that are not whole. */
function caption({ list, context }: Page): Html {
  const { first_day } = context.snapshot
  const others = (['missing', 'partial', 'restated'] as const).flatMap((status) => {
    const number = list.window.filter(({ day, coverage }) => day >= first_day && coverage === status).length
    return number === 0 ? [] : [`${pluralize(number, 'day')} ${status}`]
  })
  const { q, order, measure, subject, unknown } = list
  const isTrending = order === 'trending'
  // The total is that of all apps, growing or not.
  return markup`${q === '' && !isTrending && markup`${figure(list.total, measure)} LLM ${measure}, `}
    ${pluralize(grouped(list.ranks), `${isTrending ? 'growing ' : ''}${subject.slice(0, -1)}`)}
    ${q !== '' && markup`with <q>${q}</q> in the name`}
    ${unknown.length > 0 && `· not in this snapshot: ${unknown.join(', ')}`}
    ${list.start_date < first_day && `· data begins ${first_day}`}
    ${others.length > 0 && markup`· <a href="${context.folder}/coverage.csv">${others.join(', ')}</a>`}`
}

/** How to get what is shown, and its licence. */
function dataLinks({ context, list, parameters }: Page): Html {
  const { csv, json } = ADDRESSES[list.subject]
  const file = (path: string) => address(path, { ...parameters, chart: null, [list.subject]: null })
  return markup`<a href="${file(csv)}">CSV</a> · <a href="${file(json)}">JSON</a> ·
    <a href="${context.folder}/${SNAPSHOT_FILE}">DuckDB</a> · <a href="${REFERENCE_PATH}">API</a> ·
    <a rel="license" href="${LICENCE.url}">CC&nbsp;BY&nbsp;4.0</a>`
}

/** The rows; some columns are left out on narrow windows (`wide`), or without a script (`draw`). */
function ranking({ list, context: { snapshot }, parameters: { as_of } }: Page): Html {
  const { subject, measure, order, q, total } = list
  const isApps = subject === 'apps'
  const isTrending = order === 'trending'
  const second = measure === 'tokens' ? 'requests' : 'tokens'
  const items = list.items.filter((item) => item.in_page || q === '')
  const hasChanges = isCompared(snapshot, list)
  const most = items.reduce((top, item) => Math.max(top, Number(item[measure])), 1)
  // The growth has its room on a phone.
  const first = isTrending ? 'n wide' : 'n'
  const row = (item: Item) => {
    const tags = item.tags.join(', ')
    const name = markup`<bdi title="${item.name}">${item.name}</bdi>`
    const linked = markup`<a href="${address(`${APPS_PATH}/${item.id}`, { as_of })}">${name}</a>`
    return markup`<tr>
      <td class="draw"><label><input type="checkbox" autocomplete="off" value="${item.id}" aria-label="Draw ${item.name}" /></label></td>
      <td class="n soft">${item.rank ?? '–'}</td>
      ${hasChanges && markup`<td class="wide">${changeOf(item)}</td>`}
      <th scope="row">${isApps ? linked : name}</th>
      ${isApps && markup`<td class="tags wide soft"><span title="${tags}">${tags}</span></td>`}
      <td class="${first}">${figure(item[measure], measure)}</td>
      <td class="n">${isTrending ? growthOf(item) : shareOf(item[measure], total, most)}</td>
      <td class="n wide">${figure(item[second], second)}</td>
      <td class="wide soft">${sparkline(item.values.slice(-RECENT_DAYS))}</td>
    </tr>`
  }
  return markup`<table>
    <thead>
      <tr>
        <th class="draw">Draw</th>
        <th class="n">#</th>
        ${hasChanges && markup`<th class="wide"><abbr title="Change of rank">±</abbr></th>`}
        <th>${isApps ? 'App' : 'Model'}</th>
        ${isApps && markup`<th class="wide">Subcategory</th>`}
        <th class="${first}">${HEADS[measure]}</th>
        <th class="n">${isTrending ? 'Growth' : 'Share'}</th>
        <th class="n wide">${HEADS[second]}</th>
        <th class="wide">${RECENT_DAYS} days</th>
      </tr>
    </thead>
    <tbody>${items.map(row)}</tbody>
  </table>`
}

const HEADS = { tokens: 'Tokens', requests: 'Requests' } as const

function changeOf({ rank, earlier }: Item): Piece {
  if (rank === null || earlier === rank) return rank && '='
  if (earlier === null)
    return markup`<span class="up" title="not in this list in the window before">new</span>`
  const [kind, sign, places] = earlier > rank ? ['up', '▲', earlier - rank] : ['down', '▼', rank - earlier]
  return markup`<span class="${kind}" title="from rank ${earlier} in the window before">${sign}${places}</span>`
}

/** A part of a whole with one decimal; what is less but not nothing says so. */
function percent(part: bigint, whole: bigint): string {
  const ratio = whole === 0n ? 0 : (100 * Number(part)) / Number(whole)
  return ratio > 0 && ratio < 0.1 ? '<0.1%' : `${ratio.toFixed(1)}%`
}

/** A share with a bar, which is full for `most`. */
function shareOf(part: bigint, whole: bigint, most: number): Html {
  const width = Math.round((44 * Number(part)) / most)
  return markup`${percent(part, whole)}
    <svg class="wide soft" width="44" height="8" fill="currentColor" aria-hidden="true">
      <rect width="${width}" height="8" />
    </svg>`
}

function growthOf({ tokens, excess }: Item): Html {
  const more = excess ?? 0n
  const before = tokens - more
  // A percentage of next to nothing has many digits and no meaning.
  const growth = 100n * more > 999n * before ? '>999%' : `+${percent(more, before)}`
  return markup`+${figure(more, 'tokens more than the average of the three windows before')}
    <span class="up">${before > 0n ? growth : 'new'}</span>`
}

/** The usage of the days as a line, which breaks where days are missing. */
function sparkline(values: Item['values']): Html {
  const top = values.reduce((most, value) => Math.max(most, Number(value)), 1)
  const path = values.map((value, index) => {
    const at = `${Math.round((index * 84) / (values.length - 1))} ${19 - Math.round((18 * Number(value)) / top)}`
    return value === null ? '' : (values[index - 1] ?? null) === null ? `M${at}h0` : `L${at}`
  })
  const line = raw('fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round"')
  return markup`<svg width="84" height="20" ${line} aria-hidden="true"><path d="${path.join('')}" /></svg>`
}

function foot({ context, parameters }: Page): Html {
  const { snapshot, folder, isCurrent, entries } = context
  const option = ({ id, as_of }: SnapshotEntry, index: number) =>
    markup`<option value="${index > 0 && as_of}" ${id === snapshot.id && raw('selected')}>${as_of}</option>`
  const older = markup`<label for="as_of">Snapshot</label>
    <select id="as_of" name="as_of">${entries.map(option)}</select>
    <button>Show</button>`
  return markup`<details ${!isCurrent && raw('open')}>
    <summary>Cite / older snapshots</summary>
    <p>Print this line, and link to <a href="${folder}">the snapshot</a>: ${snapshot.attribution}</p>
    ${form(null, { ...parameters, offset: null, as_of: null }, older)}
  </details>`
}
