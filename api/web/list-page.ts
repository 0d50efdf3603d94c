/** GET / and /models (CONTRACT 4.6): a list with its chart, by the same rules as the API. */
import { describeRange } from '../../pipeline/contract/calendar.ts'
import { SNAPSHOT_FILE, SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import { CATEGORIES, subcategoriesOf } from '../../pipeline/contract/taxonomy.ts'
import { grouped, pluralize } from '../../pipeline/program/terminal.ts'
import { baselineOf, daysOf, windowBefore } from '../datasets/window.ts'
import { APPS_PATH, METHOD_PATH, MODELS_PAGE_PATH } from '../paths.ts'
import { chartFigure, figure, renderDocument } from './document.ts'
import { address, HTML, markup, raw, table, type Column, type Html } from './html.ts'
import { daysWithout, FILES, readList, RECENT_DAYS, type Item, type ListData } from './list-data.ts'
import { DRAWN, LISTS, OF_THE_PAGE, resolveList, WINDOWS } from './parameters.ts'
import type { List, ListParameters, Subject } from './parameters.ts'
import type { View, ViewContext } from './views.ts'

export const PAGES: Readonly<Record<Subject, string>> = { apps: '/', models: MODELS_PAGE_PATH }

/** The inputs of the parts of a page. */
interface Page {
  readonly context: ViewContext
  readonly list: List
  readonly data: ListData
  readonly parameters: ListParameters
  /** The window in words. */
  readonly range: string
  /** Usage of the whole list in its window. */
  readonly total: bigint
}

/** The page of a list. */
export function listView(subject: Subject): View {
  return {
    contentType: HTML,
    parameters: { ...LISTS[subject], ...OF_THE_PAGE },
    async make(context, given) {
      const { dates, days, start_date, end_date, ...rest }: ListParameters = given
      // A form sends its dates also where days are chosen.
      const isByDays = dates === undefined && days !== undefined
      const window = { ...(start_date && { start_date }), ...(end_date && { end_date }) }
      const parameters = { ...rest, ...(isByDays ? { days } : window) }
      const list = resolveList(subject, parameters, context.snapshot)
      const data = await readList(context.snapshot, list)
      const range = describeRange({ from: list.start, to: list.end })
      const total = data.days.slice(-daysOf(list)).reduce((sum, day) => sum + day.total, 0n)
      return renderPage({ context, list, parameters, data, range, total })
    },
  }
}

function renderPage(page: Page): string {
  const { context, list, data, parameters, range } = page
  const { subject, order, measure, subcategory, category, offset, limit } = list
  const group = subcategory ?? category
  const title = `${order === 'trending' ? 'Trending' : 'Popular'} ${group === null ? '' : `${group} `}${subject}`
  const source = address(FILES[subject].json, { ...parameters, chart: undefined, series: 1 })
  const none =
    offset > 0 ? `The list ends before rank ${offset + 1}` : 'Nothing is in this list in this window'
  const turn = (rel: string, label: string, to: number) =>
    markup`<a rel="${rel}" href="${address(PAGES[subject], { ...parameters, offset: to })}">${label}</a>`
  return renderDocument({
    title: `${title}, ${range}`,
    heading: subject === 'apps' ? 'App rankings' : 'Model rankings',
    description: `${title} by their use of large language models, ${range}. ${context.snapshot.attribution}`,
    context,
    path: PAGES[subject],
    q: list.q,
    kept: hidden(parameters, ['days', 'start_date', 'end_date', 'chart', subject]),
    source,
    controls: controls(page),
    main: markup`${chartFigure(source, `${measure} per day, ${range}`)}
      <section id="list">
        <p>${caption(page)}</p>
        ${data.items.some((item) => item.in_page) ? ranking(page) : markup`<p>${none}.</p>`}
        <p>
          ${offset > 0 && turn('prev', 'Previous', Math.max(0, offset - limit))}
          ${data.hasNext && turn('next', 'Next', offset + limit)}
        </p>
        <p>${notes(page)} <a href="${METHOD_PATH}">Method</a></p>
      </section>`,
    foot: foot(page),
  })
}

/** Every choice in one form, which works without a script. */
function controls({ context, list, parameters }: Page): Html {
  const { subject, order, start, end } = list
  const { days, start_date, end_date, as_of, chart } = parameters
  const { dataThrough } = context.snapshot
  const link = (label: string, to: Subject) => {
    const href = address(PAGES[to], { days, start_date, end_date, as_of, chart })
    return markup`<a href="${href}" ${to === subject && raw('aria-current="page"')}>${label}</a>`
  }
  const date = (name: string, label: string, value: string) =>
    markup`<input type="date" name="${name}" aria-label="${label}" value="${value}" max="${dataThrough}" />`
  const length = days ?? (start_date === undefined && end_date === undefined ? daysOf(list) : 0)
  const windows = WINDOWS.map((each) => [String(each), `${each} d`])
  const orders = Object.entries({ popular: 'Popular', trending: 'Trending', requests: 'By requests' })
  return markup`<form id="controls" aria-label="What is shown; a choice applies at once">
    <nav aria-label="Ranking of">${link('Apps', 'apps')}${link('Models', 'models')}</nav>
    ${choice('Order', 'sort', subject === 'apps' ? orders : orders.toSpliced(1, 1), order)}
    ${choice('Window', 'days', windows, String(length))} ${subject === 'apps' && categories(list)}
    ${date('start_date', 'First day', start)} ${date('end_date', 'Last day', end)}
    <button name="dates" value="1">Show</button>
    ${choice('Chart', 'chart', Object.entries({ stacked: 'Stacked', lines: 'Lines' }), chart ?? 'stacked')}
    ${hidden(parameters, [subject, 'limit'])}
    <noscript><button>Apply</button></noscript>
  </form>`
}

/** Radio buttons; the first is the default. */
function choice(label: string, name: string, options: readonly (readonly string[])[], chosen: string): Html {
  const option = ([value = '', text]: readonly string[]) => {
    const button = markup`type="radio" name="${name}" value="${value}" ${value === chosen && raw('checked')}`
    return markup`<label><input ${button} /><span>${text}</span></label>`
  }
  return markup`<fieldset aria-label="${label}">${options.map(option)}</fieldset>`
}

function categories({ category, subcategory }: List): Html {
  const chosen = subcategory ?? category ?? ''
  const option = (value: string, label = value) =>
    markup`<option value="${value}" ${value === chosen && raw('selected')}>${label}</option>`
  const group = (each: (typeof CATEGORIES)[number]) =>
    markup`<optgroup label="${each}">
      ${option(each, `all ${each}`)} ${subcategoriesOf(each).map((tag) => option(tag))}
    </optgroup>`
  return markup`<select name="category" aria-label="Category">
    ${option('', 'All categories')} ${CATEGORIES.map(group)}
  </select>`
}

function hidden(parameters: ListParameters, names: readonly (keyof ListParameters)[]): Html {
  const given = names.filter((name) => parameters[name] !== undefined)
  const field = (name: keyof ListParameters) =>
    markup`<input type="hidden" name="${name}" value="${parameters[name]}" />`
  return markup`${given.map(field)}`
}

/** The window, its totals, and the days that are not whole. */
function caption({ list, data, context, range, total }: Page): Html {
  const days = data.days.slice(-daysOf(list))
  const others = (['missing', 'partial', 'restated'] as const).flatMap((status) => {
    const number = days.filter(({ coverage }) => coverage === status).length
    return number === 0 ? [] : [`${pluralize(grouped(number), 'day')} ${status}`]
  })
  const file = `${SNAPSHOTS_PATH}/${context.snapshot.id}/coverage.csv`
  return markup`${range}: ${list.q === '' && markup`${figure(total, list.measure)} ${list.measure} by `}
    ${pluralize(grouped(data.ranks), list.subject.slice(0, -1))}
    ${list.q !== '' && markup`with <q>${list.q}</q> in the name`}
    ${others.length > 0 && markup`· <a href="${file}">${others.join(', ')}</a>`}`
}

/** What the comparisons are made with, and what they lack. */
function notes({ list, data, context: { snapshot } }: Page): string {
  const isTrending = list.order === 'trending'
  const before = isTrending ? baselineOf(list) : windowBefore(list)
  const lacking = daysWithout(snapshot, before)
  const lacks = `the data lacks ${lacking} of the ${pluralize(grouped(daysOf(before)), 'day')} before`
  if (!isTrending) {
    const change = data.isCompared ? 'is uncertain' : 'is not shown'
    return lacking === 0 ? '' : `The change of rank ${change}: ${lacks}.`
  }
  const gaps = lacking === 0 ? '' : `; ${lacks}, which count as zero`
  return `Growth: the tokens of the window minus the average of the three windows of equal length before it${gaps}.`
}

function ranking({ list, data, parameters: { as_of }, total }: Page): Html {
  const { subject, measure, order, q } = list
  const isApps = subject === 'apps'
  const isTrending = order === 'trending'
  const second = measure === 'tokens' ? 'requests' : 'tokens'
  const items = data.items.filter((item) => item.in_page || q === '')
  const drawn = list.drawn ?? items.slice(0, DRAWN).map(({ id }) => id)
  const most = items.reduce((top, item) => Math.max(top, Number(item[measure])), 1)
  const box = ({ id, name }: Item) => {
    const checked = drawn.includes(id) && raw('checked')
    return markup`<label><input type="checkbox" value="${id}" aria-label="Draw ${name}" ${checked} /></label>`
  }
  const nameOf = ({ id, name }: Item) => {
    const text = markup`<bdi>${name}</bdi>`
    return isApps ? markup`<a href="${address(`${APPS_PATH}/${id}`, { as_of })}">${text}</a>` : text
  }
  const columns: readonly (Column<Item> | false)[] = [
    { head: 'Draw', show: box },
    { head: '#', kind: 'n soft', show: ({ rank }) => rank ?? '–' },
    data.isCompared && { head: '±', kind: 'wide', show: changeOf },
    { head: isApps ? 'App' : 'Model', title: ({ name }) => name, show: nameOf, isName: true },
    isApps && { head: 'Subcategory', kind: 'tags wide soft', title: tagsOf, show: tagsOf },
    { ...FIGURES[measure], kind: 'n' },
    isTrending
      ? { head: 'Growth', kind: 'n', show: growthOf }
      : { head: 'Share', kind: 'n', show: (item) => shareOf(item[measure], total, most) },
    { ...FIGURES[second], kind: 'n wide' },
    {
      head: `${RECENT_DAYS} days`,
      kind: 'wide soft',
      show: ({ values }) => sparkline(values.slice(-RECENT_DAYS)),
    },
  ]
  return table(
    columns.filter((column) => column !== false),
    items,
    subject,
  )
}

const FIGURES = {
  tokens: { head: 'Tokens', show: ({ tokens }: Item) => figure(tokens, 'tokens') },
  requests: { head: 'Requests', show: ({ requests }: Item) => figure(requests, 'requests') },
} as const

const tagsOf = ({ tags }: Item) => tags.join(', ')

function changeOf({ rank, earlier }: Item): Html | null {
  if (rank === null) return null
  if (earlier === null) return markup`<span class="up">new</span>`
  if (earlier === rank) return markup`<span title="rank unchanged">=</span>`
  const [kind, sign, places] = earlier > rank ? ['up', '▲', earlier - rank] : ['down', '▼', rank - earlier]
  return markup`<span class="${kind}" title="from rank ${earlier} in the window before">${sign}${places}</span>`
}

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
  return markup`+${figure(more, 'tokens more than the average of the three windows before')}
    <span class="up">${more < tokens ? `+${percent(more, tokens - more)}` : 'new'}</span>`
}

/** The usage of the days as a line, which breaks where days are missing. */
function sparkline(values: Item['values']): Html {
  const top = values.reduce((most, value) => Math.max(most, Number(value)), 1)
  const path = values.map((value, index) => {
    const at = `${Math.round((index * 84) / (values.length - 1))} ${19 - Math.round((18 * Number(value)) / top)}`
    return value === null ? '' : (values[index - 1] ?? null) === null ? `M${at}h0` : `L${at}`
  })
  const line = raw('fill="none" stroke="currentColor" stroke-width="1.5"')
  return markup`<svg width="84" height="20" ${line} aria-hidden="true"><path d="${path.join('')}" /></svg>`
}

function foot({ context, list, parameters }: Page): Html {
  const { snapshot, isCurrent, entries } = context
  const { csv, json } = FILES[list.subject]
  const file = (path: string) => address(path, { ...parameters, chart: undefined, [list.subject]: undefined })
  const folder = `${SNAPSHOTS_PATH}/${snapshot.id}`
  const option = ({ id, as_of }: { readonly id: string; readonly as_of: string }, index: number) => {
    const value = index === 0 ? '' : as_of
    return markup`<option value="${value}" ${id === snapshot.id && raw('selected')}>${as_of}</option>`
  }
  return markup`<p>
      <b>Data</b> <a href="${file(csv)}">CSV of this list</a> · <a href="${file(json)}">JSON</a> ·
      <a href="${folder}/${SNAPSHOT_FILE}">DuckDB file</a> · <a href="${folder}">this snapshot</a>
    </p>
    <details ${!isCurrent && raw('open')}>
      <summary>Cite / older snapshots</summary>
      <p>Print this line, and link to the snapshot that you used: ${snapshot.attribution}</p>
      <label for="as_of">Snapshot</label>
      <select id="as_of" name="as_of" form="controls">${entries.map(option)}</select>
      <button form="controls">Show</button>
    </details>`
}
