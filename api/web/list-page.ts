/** GET / and /models with their files (CONTRACT 4.6): a list with its chart, by the same rules as the API. */
import { describeRange } from '../../pipeline/contract/calendar.ts'
import { DATASET_VERSION, RANKING_COLUMNS } from '../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE, SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import { CATEGORIES, subcategoriesOf } from '../../pipeline/contract/taxonomy.ts'
import { encodeCsv } from '../datasets/formats/encode-csv.ts'
import { FORMATS } from '../datasets/formats/formats.ts'
import { baselineOf, daysOf, windowBefore } from '../datasets/rankings/window.ts'
import { jsonText } from '../http/respond.ts'
import { APPS_PATH, METHOD_PATH, MODELS_PAGE_PATH } from '../paths.ts'
import { chartFigure, figure, pluralize, renderDocument } from './document.ts'
import { address, html, HTML, raw, type Html } from './html.ts'
import { daysWithout, readList, RECENT_DAYS, type Item, type ListData } from './list-data.ts'
import { DRAWN, LISTS, OF_THE_JSON, OF_THE_PAGE, resolveList, WINDOWS } from './parameters.ts'
import type { List, ListParameters, Subject } from './parameters.ts'
import type { View, ViewContext } from './views.ts'

/** The addresses of a list and its files. */
export const PATHS = {
  apps: { page: '/', csv: '/rankings.csv', json: '/rankings.json' },
  models: { page: MODELS_PAGE_PATH, csv: '/models.csv', json: '/models.json' },
} as const satisfies Readonly<Record<Subject, object>>

/** Spreadsheets take CSV without it for another character set. */
const BYTE_ORDER_MARK = '\u{feff}'

/** The rows of a list in a format; JSON also has the series by day, if the request wants them. */
export function listFile(subject: Subject, format: 'csv' | 'json'): View {
  const { app_id, app_name, ...figures } = RANKING_COLUMNS
  const columns = subject === 'apps' ? RANKING_COLUMNS : ({ model_permaslug: 'text', ...figures } as const)
  return {
    contentType: FORMATS[format].contentType,
    parameters: { ...LISTS[subject], ...(format === 'json' && OF_THE_JSON) },
    async make({ snapshot }, given) {
      const parameters: ListParameters = given
      const list = resolveList(subject, parameters, snapshot)
      const data = await readList(snapshot, list)
      const rows = data.items
        .filter((item) => item.in_page)
        .map(({ rank, requests, tokens, ...item }) => {
          return {
            ...nameOf(item, subject),
            rank: rank ?? 0n,
            total_requests: requests,
            total_tokens: String(tokens),
          }
        })
      if (format === 'csv') return `${BYTE_ORDER_MARK}${encodeCsv({ columns, rows }).toString()}`
      const meta = {
        as_of: snapshot.asOf,
        start_date: list.start,
        end_date: list.end,
        version: DATASET_VERSION,
      }
      const series = parameters.series === undefined ? undefined : seriesOf(list, data)
      return jsonText({ data: rows, meta, series })
    },
  }
}

function nameOf({ id, name }: Pick<Item, 'id' | 'name'>, subject: Subject) {
  return subject === 'apps' ? { app_id: BigInt(id), app_name: name } : { model_permaslug: id }
}

/** Usage by day of the rows and of what else is drawn: decimal strings, null for days without data. */
function seriesOf(list: List, { days: all, items }: ListData) {
  const days = all.slice(-daysOf(list))
  const text = (value: bigint | null) => value?.toString() ?? null
  return {
    measure: list.measure,
    days: days.map(({ day }) => day),
    coverage: days.map(({ coverage }) => coverage),
    total: days.map(({ coverage, total }) => (coverage === 'missing' ? null : String(total))),
    [list.subject]: items.map(({ in_list, values, ...item }) => {
      return { ...nameOf(item, list.subject), in_list, values: values.slice(-days.length).map(text) }
    }),
  }
}

/** The inputs of the parts of a page. */
interface Page {
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
      // A form sends its dates also where days are chosen.
      const others =
        given['dates'] !== undefined ? ['dates', 'days'] : given['days'] && ['start_date', 'end_date']
      const parameters: ListParameters = Object.fromEntries(
        Object.entries(given).filter(([name]) => !Array.isArray(others) || !others.includes(name)),
      )
      const list = resolveList(subject, parameters, context.snapshot)
      return renderPage({ context, list, parameters, data: await readList(context.snapshot, list) })
    },
  }
}

function renderPage(page: Page): string {
  const { context, list, data, parameters } = page
  const { subject, order, measure, subcategory, category, offset } = list
  const range = describe(list)
  const group = subcategory ?? category
  const title = `${order === 'trending' ? 'Trending' : 'Popular'} ${group === null ? '' : `${group} `}${subject}`
  const source = address(PATHS[subject].json, { ...parameters, chart: undefined, series: 1 })
  const empty =
    offset > 0 ? `The list ends before rank ${offset + 1}` : 'Nothing is in this list in this window'
  return renderDocument({
    title: `${title}, ${range}`,
    heading: subject === 'apps' ? 'App rankings' : 'Model rankings',
    description: `${title} by their use of large language models, ${range}. ${context.snapshot.attribution}`,
    context,
    search: {
      path: PATHS[subject].page,
      fields: hidden(parameters, ['days', 'start_date', 'end_date', 'chart', subject]),
    },
    source,
    controls: controls(page),
    main: html`${chartFigure(source, `${measure} per day, ${range}`)}
      <section id="list">
        <p>${caption(page)}</p>
        ${data.items.some((item) => item.in_page) ? table(page) : html`<p>${empty}.</p>`}
        <p>
          ${offset === 0 ? null : html`<a rel="prev" href="${turned(page, -1)}">Previous</a>`}
          ${data.hasNext ? html`<a rel="next" href="${turned(page, 1)}">Next</a>` : null}
        </p>
        <p>${notes(page)} <a href="${METHOD_PATH}">Method</a></p>
      </section>`,
    foot: foot(page),
  })
}

function describe({ start, end }: Pick<List, 'start' | 'end'>): string {
  return describeRange({ from: start, to: end })
}

/** The page of ranks after or before this one. */
function turned({ list: { subject, offset, limit }, parameters }: Page, step: 1 | -1): string {
  return address(PATHS[subject].page, { ...parameters, offset: Math.max(0, offset + step * limit) })
}

function hidden(parameters: ListParameters, names: readonly (keyof ListParameters)[]): Html {
  const given = names.filter((name) => parameters[name] !== undefined)
  return html`${given.map((name) => html`<input type="hidden" name="${name}" value="${parameters[name]}" />`)}`
}

/** Every choice in one form, which works without a script. */
function controls({ context, list, parameters }: Page): Html {
  const { subject, order, category, subcategory } = list
  const { days, start_date, end_date, as_of, chart } = parameters
  const link = (label: string, to: Subject) =>
    html`<a
      href="${address(PATHS[to].page, { days, start_date, end_date, as_of, chart })}"
      ${to === subject ? raw('aria-current="page"') : null}
      >${label}</a
    >`
  const radio = (name: string, value: string | number, label: string, isChosen: boolean) =>
    html`<label
      ><input type="radio" name="${name}" value="${value}" ${isChosen ? raw('checked') : null} /><span
        >${label}</span
      ></label
    >`
  const option = (value: string, label = value) =>
    html`<option value="${value}" ${value === (subcategory ?? category ?? '') ? raw('selected') : null}>
      ${label}
    </option>`
  const date = (name: string, label: string, value: string) =>
    html`<input
      type="date"
      name="${name}"
      aria-label="${label}"
      value="${value}"
      max="${context.snapshot.dataThrough}"
    />`
  const length = days ?? (start_date === undefined && end_date === undefined ? daysOf(list) : 0)
  return html`<form id="controls" aria-label="What is shown; a choice applies at once">
    <nav aria-label="Ranking of">${link('Apps', 'apps')}${link('Models', 'models')}</nav>
    <fieldset aria-label="Order">
      ${radio('sort', '', 'Popular', order === 'popular')}
      ${subject === 'apps' ? radio('sort', 'trending', 'Trending', order === 'trending') : null}
      ${radio('sort', 'requests', 'By requests', order === 'requests')}
    </fieldset>
    <fieldset aria-label="Window">
      ${WINDOWS.map((each) => radio('days', each, `${each} d`, each === length))}
    </fieldset>
    ${
      subject === 'models'
        ? null
        : html`<select name="category" aria-label="Category">
            ${option('', 'All categories')}
            ${CATEGORIES.map(
              (each) =>
                html`<optgroup label="${each}">
                  ${option(each, `all ${each}`)} ${subcategoriesOf(each).map((tag) => option(tag))}
                </optgroup>`,
            )}
          </select>`
    }
    ${date('start_date', 'First day', list.start)} ${date('end_date', 'Last day', list.end)}
    <button name="dates" value="1">Show</button>
    <fieldset aria-label="Chart">
      ${radio('chart', '', 'Stacked', chart !== 'lines')}
      ${radio('chart', 'lines', 'Lines', chart === 'lines')}
    </fieldset>
    ${hidden(parameters, [subject, 'limit'])}
    <noscript><button>Apply</button></noscript>
  </form>`
}

/** The window, its totals, and the days that are not whole. */
function caption({ list, data, context }: Page): Html {
  const days = data.days.slice(-daysOf(list))
  const others = (['missing', 'partial', 'restated'] as const).flatMap((status) => {
    const number = days.filter(({ coverage }) => coverage === status).length
    return number === 0 ? [] : [`${pluralize(number, 'day')} ${status}`]
  })
  const file = `${SNAPSHOTS_PATH}/${context.snapshot.id}/coverage.csv`
  return html`${describe(list)}: ${figure(totalOf(list, data), list.measure)} ${list.measure} by
  ${pluralize(data.ranks, list.subject.slice(0, -1))}
  ${list.q === '' ? null : html`with <q>${list.q}</q> in the name`}
  ${others.length === 0 ? null : html`· <a href="${file}">${others.join(', ')}</a>`}`
}

/** Usage of the whole list in its window. */
function totalOf(list: List, { days }: ListData): bigint {
  return days.slice(-daysOf(list)).reduce((sum, day) => sum + day.total, 0n)
}

/** What the comparisons lack. */
function notes({ list, data, context: { snapshot } }: Page): string {
  const lacks = (window: { start: string; end: string }) =>
    `the data lacks ${daysWithout(snapshot, window)} of the ${pluralize(daysOf(window), 'day')} before`
  const isWhole = daysWithout(snapshot, windowBefore(list)) === 0
  const change = `The change of rank is ${data.isCompared ? 'uncertain' : 'not shown'}: ${lacks(windowBefore(list))}.`
  if (list.order !== 'trending') return isWhole ? '' : change
  const baseline = baselineOf(list)
  const growth =
    'Growth: the tokens of the window minus the average of the three windows of equal length before it'
  if (daysWithout(snapshot, baseline) === 0) return `${growth}.`
  return `${growth}; ${lacks(baseline)}, which count as zero.`
}

/** Class `n` aligns numbers; `wide` columns are left out on narrow windows. */
function table({ list, data, parameters }: Page): Html {
  const { subject, measure, order, q } = list
  const isApps = subject === 'apps'
  const second = measure === 'tokens' ? 'requests' : 'tokens'
  const items = data.items.filter((item) => item.in_page || q === '')
  const drawn = list.drawn ?? items.slice(0, DRAWN).map(({ id }) => id)
  const total = totalOf(list, data)
  const most = items.reduce((top, item) => Math.max(top, Number(item[measure])), 1)
  const third = (item: Item) => (order === 'trending' ? growth(item) : share(item[measure], total, most))
  const head = (name: string, kind = '') => html`<th scope="col" class="${kind}">${name}</th>`
  return html`<table data-subject="${subject}">
    <thead>
      <tr>
        ${head('Draw')} ${head('#', 'n')} ${data.isCompared ? head('±', 'wide') : null}
        ${head(isApps ? 'App' : 'Model')} ${isApps ? head('Subcategory', 'wide') : null}
        ${head(capitalize(measure), 'n')} ${head(order === 'trending' ? 'Growth' : 'Share', 'n')}
        ${head(capitalize(second), 'n wide')} ${head(`${RECENT_DAYS} days`, 'wide')}
      </tr>
    </thead>
    <tbody>
      ${items.map(
        (item) =>
          html`<tr>
            <td>${tick(item, drawn)}</td>
            <td class="n soft">${item.rank ?? '–'}</td>
            ${data.isCompared ? html`<td class="wide">${change(item)}</td>` : null}
            <th scope="row" title="${item.name}">${nameLink(item, subject, parameters)}</th>
            ${isApps ? html`<td class="tags wide soft">${item.tags.join(', ')}</td>` : null}
            <td class="n">${figure(item[measure], measure)}</td>
            <td class="n">${third(item)}</td>
            <td class="n wide">${figure(item[second], second)}</td>
            <td class="wide soft">${sparkline(item.values.slice(-RECENT_DAYS))}</td>
          </tr> `,
      )}
    </tbody>
  </table>`
}

function tick({ id, name }: Item, drawn: readonly string[]): Html {
  const checked = drawn.includes(id) ? raw('checked') : null
  return html`<label><input type="checkbox" value="${id}" aria-label="Draw ${name}" ${checked} /></label>`
}

function nameLink({ id, name }: Item, subject: Subject, { as_of }: ListParameters): Html {
  const text = html`<bdi>${name}</bdi>`
  return subject === 'models' ? text : html`<a href="${address(`${APPS_PATH}/${id}`, { as_of })}">${text}</a>`
}

function change({ rank, earlier }: Item): Html | null {
  if (rank === null) return null
  if (earlier === null) return html`<span class="up">new</span>`
  if (earlier === rank) return html`<span title="rank unchanged">=</span>`
  const [kind, sign, places] = earlier > rank ? ['up', '▲', earlier - rank] : ['down', '▼', rank - earlier]
  return html`<span class="${kind}" title="from rank ${earlier} in the window before">${sign}${places}</span>`
}

const capitalize = (word: string) => word.charAt(0).toUpperCase() + word.slice(1)

const PERCENT = new Intl.NumberFormat('en', {
  style: 'percent',
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
})

function share(part: bigint, whole: bigint, most: number): Html {
  const ratio = whole === 0n ? 0 : Number(part) / Number(whole)
  const width = Math.round((44 * Number(part)) / most)
  return html`${ratio > 0 && ratio < 0.001 ? '<0.1%' : PERCENT.format(ratio)}<svg
      class="wide soft"
      width="44"
      height="8"
      fill="currentColor"
      aria-hidden="true"
    >
      <rect width="${width}" height="8" />
    </svg>`
}

function growth({ tokens, excess }: Item): Html {
  const more = excess ?? 0n
  const percent = more < tokens ? `+${PERCENT.format(Number(more) / Number(tokens - more))}` : 'new'
  return html`+${figure(more, 'tokens more than the average of the three windows before')}
    <span class="up">${percent}</span>`
}

/** The usage of the days as a line, which breaks where days are missing. */
function sparkline(values: Item['values']): Html {
  const top = values.reduce((most, value) => Math.max(most, Number(value)), 1)
  const path = values.map((value, index) => {
    const at = `${Math.round((index * 84) / (values.length - 1))} ${19 - Math.round((18 * Number(value)) / top)}`
    return value === null ? '' : (values[index - 1] ?? null) === null ? `M${at}h0` : `L${at}`
  })
  return html`<svg
    width="84"
    height="20"
    fill="none"
    stroke="currentColor"
    stroke-width="1.5"
    aria-hidden="true"
  >
    <path d="${path.join('')}" />
  </svg>`
}

function foot({ context, list, parameters }: Page): Html {
  const { snapshot, isCurrent, entries } = context
  const { csv, json } = PATHS[list.subject]
  const file = (path: string) => address(path, { ...parameters, chart: undefined, [list.subject]: undefined })
  const folder = `${SNAPSHOTS_PATH}/${snapshot.id}`
  return html`<p>
      <b>Data</b> <a href="${file(csv)}">CSV of this list</a> · <a href="${file(json)}">JSON</a> ·
      <a href="${folder}/${SNAPSHOT_FILE}">DuckDB file</a> · <a href="${folder}">this snapshot</a>
    </p>
    <details ${isCurrent ? null : raw('open')}>
      <summary>Cite / older snapshots</summary>
      <p>Print this line, and link to the snapshot that you used:</p>
      <p>${snapshot.attribution}. ${snapshot.sources}</p>
      <label for="as_of">Snapshot</label>
      <select id="as_of" name="as_of" form="controls">
        ${entries.map(
          ({ as_of }, index) =>
            html`<option
              value="${index === 0 ? '' : as_of}"
              ${as_of === snapshot.asOf ? raw('selected') : null}
            >
              ${as_of}
            </option>`,
        )}
      </select>
      <button form="controls">Show</button>
    </details>`
}
