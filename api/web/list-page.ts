/** GET / and /models (CONTRACT 4.6): a list with its chart, by the same rules as the API. */
import { describeRange } from '../../pipeline/contract/calendar.ts'
import { SNAPSHOT_FILE, SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import { CATEGORIES, subcategoriesOf } from '../../pipeline/contract/taxonomy.ts'
import { grouped, pluralize } from '../../pipeline/program/terminal.ts'
import { baselineOf, daysOf, windowBefore, type DateWindow } from '../datasets/window.ts'
import { APPS_PATH, METHOD_PATH, MODELS_PAGE_PATH } from '../paths.ts'
import { chartFigure, figure, renderDocument } from './document.ts'
import { address, html, HTML, raw, type Html } from './html.ts'
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
  const source = address(FILES[subject].json, { ...parameters, chart: undefined, series: 1 })
  const none =
    offset > 0 ? `The list ends before rank ${offset + 1}` : 'Nothing is in this list in this window'
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
    main: html`${chartFigure(source, `${measure} per day, ${range}`)}
      <section id="list">
        <p>${caption(page)}</p>
        ${data.items.some((item) => item.in_page) ? table(page) : html`<p>${none}.</p>`}
        <p>
          ${offset === 0 ? null : html`<a rel="prev" href="${turned(page, -1)}">Previous</a>`}
          ${data.hasNext ? html`<a rel="next" href="${turned(page, 1)}">Next</a>` : null}
        </p>
        <p>${notes(page)} <a href="${METHOD_PATH}">Method</a></p>
      </section>`,
    foot: foot(page),
  })
}

function describe({ start, end }: DateWindow): string {
  return describeRange({ from: start, to: end })
}

/** The page of ranks after or before this one. */
function turned({ list: { subject, offset, limit }, parameters }: Page, step: 1 | -1): string {
  return address(PAGES[subject], { ...parameters, offset: Math.max(0, offset + step * limit) })
}

/** Every choice in one form, which works without a script. */
function controls({ context, list, parameters }: Page): Html {
  const { subject, order } = list
  const { days, start_date, end_date, as_of, chart } = parameters
  const link = (label: string, to: Subject) =>
    html`<a
      href="${address(PAGES[to], { days, start_date, end_date, as_of, chart })}"
      ${current(to === subject)}
      >${label}</a
    >`
  const date = (name: string, label: string, value: string) =>
    html`<input type="date" name="${name}" aria-label="${label}" value="${value}" max="${dataThrough}" />`
  const { dataThrough } = context.snapshot
  const length = days ?? (start_date === undefined && end_date === undefined ? daysOf(list) : 0)
  const windows = WINDOWS.map((each) => [String(each), `${each} d`])
  const orders = Object.entries({ popular: 'Popular', trending: 'Trending', requests: 'By requests' })
  return html`<form id="controls" aria-label="What is shown; a choice applies at once">
    <nav aria-label="Ranking of">${link('Apps', 'apps')}${link('Models', 'models')}</nav>
    ${choice('Order', 'sort', subject === 'apps' ? orders : orders.toSpliced(1, 1), order)}
    ${choice('Window', 'days', windows, String(length))} ${subject === 'apps' ? categories(list) : null}
    ${date('start_date', 'First day', list.start)} ${date('end_date', 'Last day', list.end)}
    <button name="dates" value="1">Show</button>
    ${choice('Chart', 'chart', Object.entries({ stacked: 'Stacked', lines: 'Lines' }), chart ?? 'stacked')}
    ${hidden(parameters, [subject, 'limit'])}
    <noscript><button>Apply</button></noscript>
  </form>`
}

const current = (is: boolean) => (is ? raw('aria-current="page"') : null)
const selected = (is: boolean) => (is ? raw('selected') : null)
const checked = (is: boolean) => (is ? raw('checked') : null)

/** Radio buttons; the first is the default. */
function choice(label: string, name: string, options: readonly (readonly string[])[], chosen: string): Html {
  return html`<fieldset aria-label="${label}">
    ${options.map(
      ([value = '', text]) =>
        html`<label
          ><input type="radio" name="${name}" value="${value}" ${checked(value === chosen)} /><span
            >${text}</span
          ></label
        >`,
    )}
  </fieldset>`
}

function categories({ category, subcategory }: List): Html {
  const option = (value: string, label = value) =>
    html`<option value="${value}" ${selected(value === (subcategory ?? category ?? ''))}>${label}</option>`
  return html`<select name="category" aria-label="Category">
    ${option('', 'All categories')}
    ${CATEGORIES.map(
      (each) =>
        html`<optgroup label="${each}">
          ${option(each, `all ${each}`)} ${subcategoriesOf(each).map((tag) => option(tag))}
        </optgroup>`,
    )}
  </select>`
}

function hidden(parameters: ListParameters, names: readonly (keyof ListParameters)[]): Html {
  const given = names.filter((name) => parameters[name] !== undefined)
  return html`${given.map((name) => html`<input type="hidden" name="${name}" value="${parameters[name]}" />`)}`
}

/** The window, its totals, and the days that are not whole. */
function caption({ list, data, context }: Page): Html {
  const days = data.days.slice(-daysOf(list))
  const others = (['missing', 'partial', 'restated'] as const).flatMap((status) => {
    const number = days.filter(({ coverage }) => coverage === status).length
    return number === 0 ? [] : [`${pluralize(grouped(number), 'day')} ${status}`]
  })
  const file = `${SNAPSHOTS_PATH}/${context.snapshot.id}/coverage.csv`
  const all = html`${figure(totalOf(list, data), list.measure)} ${list.measure} by `
  return html`${describe(list)}: ${list.q === '' ? all : null}
  ${pluralize(grouped(data.ranks), list.subject.slice(0, -1))}
  ${list.q === '' ? null : html`with <q>${list.q}</q> in the name`}
  ${others.length === 0 ? null : html`· <a href="${file}">${others.join(', ')}</a>`}`
}

/** Usage of the whole list in its window. */
function totalOf(list: List, { days }: ListData): bigint {
  return days.slice(-daysOf(list)).reduce((sum, day) => sum + day.total, 0n)
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

/** Class `n` aligns numbers; `wide` columns are left out on narrow windows. */
function table({ list, data, parameters }: Page): Html {
  const { subject, measure, order, q } = list
  const isApps = subject === 'apps'
  const [own, other] = measure === 'tokens' ? ['Tokens', 'Requests'] : ['Requests', 'Tokens']
  const second = measure === 'tokens' ? 'requests' : 'tokens'
  const items = data.items.filter((item) => item.in_page || q === '')
  const drawn = list.drawn ?? items.slice(0, DRAWN).map(({ id }) => id)
  const total = totalOf(list, data)
  const most = items.reduce((top, item) => Math.max(top, Number(item[measure])), 1)
  return html`<table data-subject="${subject}">
    <thead>
      <tr>
        ${head('Draw')} ${head('#', 'n')} ${data.isCompared ? head('±', 'wide') : null}
        ${head(isApps ? 'App' : 'Model')} ${isApps ? head('Subcategory', 'wide') : null} ${head(own, 'n')}
        ${head(order === 'trending' ? 'Growth' : 'Share', 'n')} ${head(other, 'n wide')}
        ${head(`${RECENT_DAYS} days`, 'wide')}
      </tr>
    </thead>
    <tbody>
      ${items.map(
        (item) =>
          html`<tr>
            <td>
              <label
                ><input
                  type="checkbox"
                  value="${item.id}"
                  aria-label="Draw ${item.name}"
                  ${checked(drawn.includes(item.id))}
              /></label>
            </td>
            <td class="n soft">${item.rank ?? '–'}</td>
            ${data.isCompared ? html`<td class="wide">${changeOf(item)}</td>` : null}
            <th scope="row" title="${item.name}">${nameOf(item, isApps, parameters.as_of)}</th>
            ${isApps ? html`<td class="tags wide soft" title="${item.tags.join(', ')}">${item.tags.join(', ')}</td>` : null}
            <td class="n">${figure(item[measure], measure)}</td>
            <td class="n">${order === 'trending' ? growthOf(item) : shareOf(item[measure], total, most)}</td>
            <td class="n wide">${figure(item[second], second)}</td>
            <td class="wide soft">${sparkline(item.values.slice(-RECENT_DAYS))}</td>
          </tr> `,
      )}
    </tbody>
  </table>`
}

function head(name: string, kind = ''): Html {
  return html`<th scope="col" class="${kind}">${name}</th>`
}

function nameOf({ id, name }: Item, isApp: boolean, as_of: string | undefined): Html {
  const text = html`<bdi>${name}</bdi>`
  return isApp ? html`<a href="${address(`${APPS_PATH}/${id}`, { as_of })}">${text}</a>` : text
}

function changeOf({ rank, earlier }: Item): Html | null {
  if (rank === null) return null
  if (earlier === null) return html`<span class="up">new</span>`
  if (earlier === rank) return html`<span title="rank unchanged">=</span>`
  const [kind, sign, places] = earlier > rank ? ['up', '▲', earlier - rank] : ['down', '▼', rank - earlier]
  return html`<span class="${kind}" title="from rank ${earlier} in the window before">${sign}${places}</span>`
}

function percent(part: bigint, whole: bigint): string {
  const ratio = whole === 0n ? 0 : (100 * Number(part)) / Number(whole)
  return ratio > 0 && ratio < 0.1 ? '<0.1%' : `${ratio.toFixed(1)}%`
}

/** A share with a bar, which is full for `most`. */
function shareOf(part: bigint, whole: bigint, most: number): Html {
  const width = Math.round((44 * Number(part)) / most)
  return html`${percent(part, whole)}
    <svg class="wide soft" width="44" height="8" fill="currentColor" aria-hidden="true">
      <rect width="${width}" height="8" />
    </svg>`
}

function growthOf({ tokens, excess }: Item): Html {
  const more = excess ?? 0n
  return html`+${figure(more, 'tokens more than the average of the three windows before')}
    <span class="up">${more < tokens ? `+${percent(more, tokens - more)}` : 'new'}</span>`
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
  const { csv, json } = FILES[list.subject]
  const file = (path: string) => address(path, { ...parameters, chart: undefined, [list.subject]: undefined })
  const folder = `${SNAPSHOTS_PATH}/${snapshot.id}`
  return html`<p>
      <b>Data</b> <a href="${file(csv)}">CSV of this list</a> · <a href="${file(json)}">JSON</a> ·
      <a href="${folder}/${SNAPSHOT_FILE}">DuckDB file</a> · <a href="${folder}">this snapshot</a>
    </p>
    <details ${isCurrent ? null : raw('open')}>
      <summary>Cite / older snapshots</summary>
      <p>Print this line, and link to the snapshot that you used: ${snapshot.attribution}</p>
      <label for="as_of">Snapshot</label>
      <select id="as_of" name="as_of" form="controls">
        ${entries.map(
          ({ id, as_of }, index) =>
            html`<option value="${index === 0 ? '' : as_of}" ${selected(id === snapshot.id)}>
              ${as_of}
            </option>`,
        )}
      </select>
      <button form="controls">Show</button>
    </details>`
}
