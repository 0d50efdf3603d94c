/** GET / and /models (CONTRACT 4.6): a list with its chart, by the same rules as the API. */
import { describeRange, FLOOR_DATE } from '../../pipeline/contract/calendar.ts'
import { LICENCE } from '../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../pipeline/contract/files.ts'
import { CATEGORIES, subcategoriesOf } from '../../pipeline/contract/taxonomy.ts'
import { grouped, pluralize } from '../../pipeline/program/terminal.ts'
import { daysOf, DEFAULT_WINDOW_DAYS, windowsBefore } from '../datasets/window.ts'
import { APPS_PATH, METHOD_PATH, MODELS_PAGE_PATH, REFERENCE_PATH } from '../paths.ts'
import { chartFigure, figure, renderDocument, type View, type ViewContext } from './document.ts'
import { address, form, HTML, markup, raw, table, type Column, type Given, type Html } from './html.ts'
import { daysWithout, FILES, readList, RECENT_DAYS, seriesOf, type Item, type ListData } from './list-data.ts'
import {
  DRAWN,
  LISTS,
  OF_THE_PAGE,
  resolveList,
  WINDOWS,
  type List,
  type ListParameters,
  type Subject,
} from './parameters.ts'

export const PAGES: Readonly<Record<Subject, string>> = { apps: '/', models: MODELS_PAGE_PATH }

/** The inputs of the parts of a page. */
type Page = {
  readonly context: ViewContext
  readonly list: List
  readonly data: ListData
  readonly parameters: ListParameters
}

/** The page of a list. */
export function listView(subject: Subject): View {
  return {
    contentType: HTML,
    parameters: { ...LISTS[subject], ...OF_THE_PAGE },
    async make(context, given) {
      const parameters: ListParameters = given
      const list = resolveList(subject, parameters, context.snapshot)
      const data = await readList(context.snapshot, list)
      return renderPage({ context, list, parameters, data })
    },
  }
}

function renderPage(page: Page): string {
  const { context, list, data, parameters } = page
  const { subject, order, measure, subcategory, category, offset, limit } = list
  const range = rangeOf(list)
  const group = subcategory ?? category
  const title = `${order === 'trending' ? 'Trending' : 'Popular'} ${group === null ? '' : `${group} `}${subject}`
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
    parameters,
    series: seriesOf(data),
    controls: controls(page),
    main: markup`${chartFigure(`${measure} per day, ${range}`, subject)}
      <section id="list">
        <p>${caption(page)} · ${dataLinks(page)}</p>
        <div id="rows">${data.items.some((item) => item.in_page) ? ranking(page) : markup`<p>${none}.</p>`}</div>
        <p>
          ${offset > 0 && turn('prev', 'Previous', Math.max(0, offset - limit))}
          ${data.hasNext && turn('next', 'Next', offset + limit)}
        </p>
        <p>${note(page)} <a href="${METHOD_PATH}">Method</a></p>
      </section>`,
    foot: foot(page),
  })
}

/** Every choice: links and forms, which work without a script. */
function controls({ context, list, parameters }: Page): Html {
  const { subject, order, start, end } = list
  const { days, start_date, end_date, as_of, chart } = parameters
  const shared = { days, start_date, end_date, as_of, chart }
  const to = (changes: Given) => address(PAGES[subject], { ...parameters, offset: null, ...changes })
  const length = days ?? (start_date === undefined && end_date === undefined ? DEFAULT_WINDOW_DAYS : 0)
  const ofDays = (each: number) => to({ days: each, start_date: null, end_date: null })
  const max = context.snapshot.dataThrough
  const date = (name: string, label: string, value: string) =>
    markup`<input type="date" name="${name}" aria-label="${label}" value="${value}" min="${FLOOR_DATE}" max="${max}" />`
  const dates = markup`${date('start_date', 'First day', start)} ${date('end_date', 'Last day', end)}
    <button>Show</button>`
  const choices: Readonly<Record<string, readonly Choice[]>> = {
    'Ranking of': [
      ['Apps', address(PAGES.apps, shared), subject === 'apps'],
      ['Models', address(PAGES.models, shared), subject === 'models'],
    ],
    Order: LISTS[subject].sort.schema.options.map((each) => [
      ORDERS[each],
      to({ sort: each === 'popular' ? null : each }),
      each === order,
    ]),
    Window: WINDOWS.map((each) => [`${each} d`, ofDays(each), each === length]),
    Chart: [
      ['Stacked', to({ chart: null }), chart !== 'lines'],
      ['Lines', to({ chart: 'lines' }), chart === 'lines'],
    ],
  }
  return markup`<section id="controls" aria-label="What is shown">
    ${Object.entries(choices).map(([label, links]) => choice(label, links))}
    ${subject === 'apps' && form(null, parameters, ['category', 'subcategory'], categories(list))}
    ${form(null, parameters, ['days', 'start_date', 'end_date'], dates)}
  </section>`
}

const ORDERS = { popular: 'Popular', trending: 'Trending', requests: 'By requests' } as const

type Choice = readonly [text: string, href: string, isChosen: boolean]

/** Links of which one is what is shown. */
function choice(label: string, choices: readonly Choice[]): Html {
  const link = ([text, href, isChosen]: Choice) =>
    markup`<a href="${href}" ${isChosen && raw('aria-current="true"')}>${text}</a>`
  return markup`<nav aria-label="${label}">${choices.map(link)}</nav>`
}

function categories({ category, subcategory }: List): Html {
  const chosen = subcategory ?? category ?? ''
  const option = (value: string, label = value) =>
    markup`<option value="${value}" ${value === chosen && raw('selected')}>${label}</option>`
  const group = (each: (typeof CATEGORIES)[number]) =>
    markup`<optgroup label="${each}">
      ${option(each, `all ${each}`)} ${subcategoriesOf(each).map((tag) => option(tag))}
    </optgroup>`
  return markup`<select name="category" aria-label="Category; a choice applies at once">
      ${option('', 'All categories')} ${CATEGORIES.map(group)}
    </select>
    <noscript><button>Apply</button></noscript>`
}

const rangeOf = ({ start, end }: List) => describeRange({ from: start, to: end })

/** The window, its totals, and the days that are not whole. */
function caption({ list, data, context }: Page): Html {
  const { firstDay } = context.snapshot
  const others = (['missing', 'partial', 'restated'] as const).flatMap((status) => {
    const number = data.window.filter(({ day, coverage }) => day >= firstDay && coverage === status).length
    return number === 0 ? [] : [`${pluralize(grouped(number), 'day')} ${status}`]
  })
  const { q, order, measure, subject } = list
  const isTrending = order === 'trending'
  // The total is that of all apps, growing or not.
  const total = q === '' && !isTrending && markup`${figure(data.total, measure)} LLM ${measure}, `
  return markup`${rangeOf(list)}: ${total}
    ${pluralize(grouped(data.ranks), `${isTrending ? 'growing ' : ''}${subject.slice(0, -1)}`)}
    ${q !== '' && markup`with <q>${q}</q> in the name`}
    ${data.unknown.length > 0 && `· not in this snapshot: ${data.unknown.join(', ')}`}
    ${list.start < firstDay && `· data begins ${firstDay}`}
    ${others.length > 0 && markup`· <a href="${context.folder}/coverage.csv">${others.join(', ')}</a>`}`
}

/** How to get what is shown, and its licence. */
function dataLinks({ context, list, parameters }: Page): Html {
  const { csv, json } = FILES[list.subject]
  const file = (path: string) => address(path, { ...parameters, chart: null, [list.subject]: null })
  return markup`<a href="${file(csv)}">CSV</a> · <a href="${file(json)}">JSON</a> ·
    <a href="${context.folder}/${SNAPSHOT_FILE}">DuckDB</a> · <a href="${REFERENCE_PATH}">API</a> ·
    <a rel="license" href="${LICENCE.url}">CC&nbsp;BY&nbsp;4.0</a>`
}

/** What the comparisons are made with, and what they lack. */
function note({ list, data, context: { snapshot } }: Page): string {
  const isTrending = list.order === 'trending'
  const before = windowsBefore(list, isTrending ? 3 : 1)
  const lacking = daysWithout(snapshot, before)
  const lacks = `the data lacks ${lacking} of the ${pluralize(grouped(daysOf(before)), 'day')} before`
  const growth =
    'Growth: the tokens of the window minus the average of the three windows of equal length before it'
  if (lacking === 0) return isTrending ? `${growth}.` : ''
  if (isTrending) return `${growth}; ${lacks}, which count as zero.`
  return `The change of rank is ${data.isCompared ? 'uncertain' : 'not shown'}: ${lacks}.`
}

function ranking({ list, data, parameters: { as_of } }: Page): Html {
  const { subject, measure, order, q } = list
  const isApps = subject === 'apps'
  const isTrending = order === 'trending'
  const second = measure === 'tokens' ? 'requests' : 'tokens'
  const items = data.items.filter((item) => item.in_page || q === '')
  const drawn = list.drawn ?? items.slice(0, DRAWN).map(({ id }) => id)
  const most = items.reduce((top, item) => Math.max(top, Number(item[measure])), 1)
  const box = ({ id, name }: Item) => {
    const checked = drawn.includes(id) && raw('checked')
    // Browsers would restore ticks by the place of their row, which another snapshot changes.
    return markup`<label>
      <input type="checkbox" autocomplete="off" value="${id}" aria-label="Draw ${name}" ${checked} />
    </label>`
  }
  const nameOf = ({ id, name }: Item) => {
    const text = markup`<bdi title="${name}">${name}</bdi>`
    return isApps ? markup`<a href="${address(`${APPS_PATH}/${id}`, { as_of })}">${text}</a>` : text
  }
  const columns: readonly (Column<Item> | false)[] = [
    { head: 'Draw', kind: 'draw', show: box },
    { head: '#', kind: 'n soft', show: ({ rank }) => rank ?? '–' },
    data.isCompared && { head: markup`<abbr title="Change of rank">±</abbr>`, kind: 'wide', show: changeOf },
    { head: isApps ? 'App' : 'Model', show: nameOf, isName: true },
    isApps && {
      head: 'Subcategory',
      kind: 'tags wide soft',
      show: ({ tags }) => markup`<span title="${tags.join(', ')}">${tags.join(', ')}</span>`,
    },
    // The growth has its room on a phone.
    { ...FIGURES[measure], kind: isTrending ? 'n wide' : 'n' },
    isTrending
      ? { head: 'Growth', kind: 'n', show: growthOf }
      : { head: 'Share', kind: 'n', show: (item) => shareOf(item[measure], data.total, most) },
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
  )
}

const FIGURES = {
  tokens: { head: 'Tokens', show: ({ tokens }: Item) => figure(tokens, 'tokens') },
  requests: { head: 'Requests', show: ({ requests }: Item) => figure(requests, 'requests') },
} as const

function changeOf({ rank, earlier }: Item): Html | null {
  if (rank === null) return null
  if (earlier === null)
    return markup`<span class="up" title="not in this list in the window before">new</span>`
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
  const option = ({ id, as_of }: { readonly id: string; readonly as_of: string }, index: number) => {
    const value = index === 0 ? '' : as_of
    return markup`<option value="${value}" ${id === snapshot.id && raw('selected')}>${as_of}</option>`
  }
  const older = markup`<label for="as_of">Snapshot</label>
    <select id="as_of" name="as_of">${entries.map(option)}</select>
    <button>Show</button>`
  return markup`<details ${!isCurrent && raw('open')}>
    <summary>Cite / older snapshots</summary>
    <p>Print this line, and link to <a href="${folder}">the snapshot</a>: ${snapshot.attribution}</p>
    ${form(null, parameters, ['as_of'], older)}
  </details>`
}
