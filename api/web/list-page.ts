/** GET / and /models (CONTRACT 4.6): a list with its chart, from the same snapshot and the same rules as the API. */
import { describeRange, rangesOf } from '../../pipeline/contract/calendar.ts'
import { COMPARABILITY_NOTE } from '../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE, SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import { CATEGORIES, subcategoriesOf } from '../../pipeline/contract/taxonomy.ts'
import { baselineOf, daysOf } from '../datasets/window.ts'
import { queryString } from '../http/respond.ts'
import { METHOD_PATH, MODELS_PAGE_PATH } from '../paths.ts'
import { address } from './addresses.ts'
import { chartFigure, HTML, renderDocument } from './document.ts'
import { firstLine } from './first-line.ts'
import { html, type Html } from './html.ts'
import { readList, type ListData } from './list-data.ts'
import { FILES } from './list-files.ts'
import { listTable } from './list-table.ts'
import { compact, counted } from './numbers.ts'
import { missingDays, parseList, resolveList, WINDOWS } from './parameters.ts'
import type { List, ListParameters, ListRequest, Subject } from './parameters.ts'
import { structuredData } from './structured-data.ts'
import type { View, ViewContext } from './views.ts'

const PATHS: Readonly<Record<Subject, string>> = { apps: '/', models: MODELS_PAGE_PATH }

/** The inputs of the parts of a page. */
interface Page {
  readonly context: ViewContext
  readonly list: List
  readonly data: ListData
  readonly parameters: ListParameters
}

export function listView(subject: Subject): View<ListRequest> {
  return {
    name: subject,
    contentType: HTML,
    read: (request) => parseList(subject, queryString(request)),
    async make(context, request) {
      const list = resolveList(request, context.snapshot)
      const { parameters } = request
      return renderPage({ context, list, parameters, data: await readList(context.snapshot, list) })
    },
  }
}

function renderPage(page: Page): string {
  const { context, list, data, parameters } = page
  const { snapshot } = context
  const title = titleOf(list)
  const source = address(FILES[list.subject].json, { ...parameters, chart: undefined, series: 1 })
  const label = `${list.measure === 'tokens' ? 'Tokens' : 'Requests'} per day, ${describe(list)}`
  return renderDocument({
    title: `${title}, ${describe(list)}`,
    description: `${title} by their use of large language models, ${describe(list)}. ${snapshot.attribution}`,
    source,
    header: html`${firstLine(list.subject === 'apps' ? 'App rankings' : 'Model rankings', context, { isList: true })}
    ${controls(page)}`,
    main: html`${chartFigure(source, parameters.chart ?? 'stacked', label)}
      <section>
        <p class="caption">${caption(page)}</p>
        ${data.rows.length === 0 ? emptyList(page) : listTable(list, data, parameters.as_of)} ${pages(page)}
        ${notes(page)}
      </section>`,
    foot: foot(page),
    structuredData: structuredData(context),
  })
}

/** `Popular coding apps`. */
function titleOf({ subject, sort, category, subcategory }: List): string {
  const group = subcategory ?? category
  return `${sort === 'popular' ? 'Popular' : 'Trending'} ${group === null ? '' : `${group} `}${subject}`
}

function describe({ start, end }: Pick<List, 'start' | 'end'>): string {
  return describeRange({ from: start, to: end })
}

/** Other parameters; undefined removes one. */
type Change = { readonly [Name in keyof ListParameters]?: ListParameters[Name] | undefined }

/** The page with other parameters, from the first rank on. */
function changed({ list, parameters }: Page, change: Change): string {
  return address(PATHS[list.subject], { ...parameters, offset: undefined, ...change })
}

function controls(page: Page): Html {
  const { list, parameters } = page
  const { sort, measure, days, subject } = list
  const link = (label: string, change: Change, isChosen: boolean) =>
    html`<a href="${changed(page, change)}" ${isChosen ? html`aria-current="true"` : null}>${label}</a>`
  const other = (label: string, of: Subject) => {
    const { start_date, end_date, days: length, as_of, chart } = parameters
    const kept = { start_date, end_date, days: length, as_of, chart }
    const current = of === subject ? html`aria-current="page"` : null
    return html`<a href="${address(PATHS[of], kept)}" ${current}>${label}</a>`
  }
  return html`<nav aria-label="What is shown">
    <div role="group" aria-label="Ranking of">${other('Apps', 'apps')} ${other('Models', 'models')}</div>
    <div role="group" aria-label="Order">
      ${link('Popular', { sort: undefined, by: undefined }, sort === 'popular' && measure === 'tokens')}
      ${subject === 'models' ? null : link('Trending', { sort: 'trending', by: undefined }, sort === 'trending')}
      ${link('By requests', { sort: undefined, by: 'requests' }, measure === 'requests')}
    </div>
    <div role="group" aria-label="Window">
      ${WINDOWS.map((length) =>
        link(`${length} d`, { days: length, start_date: undefined, end_date: undefined }, days === length),
      )}
    </div>
    ${dates(page)} ${subject === 'models' ? null : categories(page)}
    <div role="group" aria-label="Chart">
      ${link('Stacked', { chart: undefined }, parameters.chart !== 'lines')}
      ${link('Lines', { chart: 'lines' }, parameters.chart === 'lines')}
    </div>
  </nav>`
}

/** The parameters that a form sends beside its own fields. */
function hiddenFields({ parameters }: Page, own: readonly (keyof ListParameters)[]): Html[] {
  return Object.entries({ ...parameters, offset: undefined }).flatMap(([name, value]) =>
    value === undefined || own.some((each) => each === name)
      ? []
      : [html`<input type="hidden" name="${name}" value="${value}" />`],
  )
}

function dates(page: Page): Html {
  const { list, context } = page
  const field = (name: string, label: string, value: string) =>
    html`<input
      type="date"
      name="${name}"
      aria-label="${label}"
      value="${value}"
      max="${context.snapshot.dataThrough}"
    />`
  return html`<form action="${PATHS[list.subject]}">
    ${hiddenFields(page, ['start_date', 'end_date', 'days'])} ${field('start_date', 'First day', list.start)}
    ${field('end_date', 'Last day', list.end)}
    <button>Show</button>
  </form>`
}

function categories(page: Page): Html {
  const chosen = page.list.subcategory ?? page.list.category
  const option = (value: string, label = value) =>
    html`<option value="${value}" ${value === (chosen ?? '') ? html`selected` : null}>${label}</option>`
  return html`<form action="/" data-at-once>
    ${hiddenFields(page, ['category', 'subcategory'])}
    <select name="category" aria-label="Category">
      ${option('', 'All categories')}
      ${CATEGORIES.map(
        (category) =>
          html`<optgroup label="${category}">
            ${option(category, `all ${category}`)} ${subcategoriesOf(category).map((each) => option(each))}
          </optgroup>`,
      )}
    </select>
    <noscript><button>Show</button></noscript>
  </form>`
}

/** The window, its totals, and the days that are not whole. */
function caption({ list, data, context }: Page): Html {
  const { snapshot } = context
  const total = data.days.slice(-daysOf(list)).reduce((sum, day) => sum + day.total, 0n)
  const missing = missingDays(snapshot, list)
  const partial = snapshot.daysPartial.filter((day) => day >= list.start && day <= list.end)
  const restated = data.days.filter(({ day, coverage }) => coverage === 'restated' && day >= list.start)
  const files = `${SNAPSHOTS_PATH}/${snapshot.id}`
  return html`${describe(list)}: ${compact(total)} ${list.measure} by
  ${counted(data.ranks, list.subject.slice(0, -1))}
  ${missing.length === 0 ? null : html`· <a href="${files}/coverage.csv" title="${spans(missing)}">${counted(missing.length, 'day')} missing</a>`}
  ${partial.length === 0 ? null : html`· <a href="${files}/coverage.csv" title="${spans(partial)}">${counted(partial.length, 'day')} partial</a>`}
  ${restated.length === 0 ? null : html`· <a href="${files}/restatements.csv" title="${spans(restated.map(({ day }) => day))}">${counted(restated.length, 'day')} restated</a>`}`
}

/** Spans of days in a tooltip. */
const SPANS = 8

function spans(days: readonly string[]): string {
  const ranges = rangesOf(days)
  const shown = ranges.slice(0, SPANS).map(describeRange).join(', ')
  return ranges.length > SPANS ? `${shown} and further days` : shown
}

function emptyList(page: Page): Html {
  const { list, context } = page
  if (missingDays(context.snapshot, list).length === daysOf(list)) {
    return html`<p>There is no data of any day of this window.</p>`
  }
  if (list.offset === 0) return html`<p>Nothing has made this list in this window.</p>`
  return html`<p>
    The list ends before rank ${list.offset + 1}. <a href="${changed(page, {})}">To the first rank</a>
  </p>`
}

function pages(page: Page): Html {
  const { list, data } = page
  const { offset, limit } = list
  const before = offset < limit ? { limit: offset, offset: 0 } : { limit, offset: offset - limit }
  return html`<p class="pages">
    ${offset === 0 ? null : html`<a rel="prev" href="${changed(page, before)}">Previous</a>`}
    ${data.hasNext ? html`<a rel="next" href="${changed(page, { offset: offset + limit })}">Next</a>` : null}
  </p>`
}

/** What the order is made from, and how much of its comparison the data has. */
function notes({ list, data, context }: Page): Html {
  const { window, missing, isCompared } = data.earlier
  const lacks = `the data lacks ${missing} of the ${counted(daysOf(window), 'day')} before (${describe(window)})`
  const change = isCompared ? 'is uncertain' : 'is not shown'
  const baseline = baselineOf(list)
  const gaps = missingDays(context.snapshot, baseline).length
  const growth =
    'Growth: the tokens of the window minus the average of the three windows of equal length before it' +
    (gaps === 0
      ? '.'
      : `. The data lacks ${gaps} of these ${daysOf(baseline)} days, which count as zero: growth looks larger than it is.`)
  return html`<p class="notes">
    ${list.sort === 'trending' ? growth : null}
    ${missing === 0 ? null : `The change of rank ${change}: ${lacks}.`} <a href="${METHOD_PATH}">Method</a>
  </p>`
}

function foot(page: Page): Html {
  const { context, list, parameters } = page
  const { snapshot, publisher, isCurrent } = context
  const { csv, json } = FILES[list.subject]
  const file = (path: string) => address(path, { ...parameters, chart: undefined, [list.subject]: undefined })
  const folder = `${SNAPSHOTS_PATH}/${snapshot.id}`
  return html`<p>
      <b>Data</b> <a href="${file(csv)}">CSV of this list</a> · <a href="${file(json)}">JSON</a> ·
      <a href="${folder}/${SNAPSHOT_FILE}">DuckDB file</a> · <a href="${folder}">this snapshot</a>
    </p>
    <details ${isCurrent ? null : html`open`}>
      <summary>Cite / older snapshots</summary>
      <p>Print this line, and link to the snapshot that you used:</p>
      <pre>${snapshot.attribution}${snapshot.sources === null ? null : `\n${snapshot.sources}`}</pre>
      <pre>
@misc{app_rankings_${snapshot.id}, title = {App Rankings}, author = {${publisher}}, year = {${snapshot.asOf.slice(0, 4)}}, note = {As of ${snapshot.asOf}, CC BY 4.0}}</pre>
      ${snapshots(page)}
    </details>
    <p>${COMPARABILITY_NOTE}</p>`
}

function snapshots(page: Page): Html {
  const { context, list } = page
  const { entries, retractions, snapshot } = context
  return html`<form action="${PATHS[list.subject]}">
      ${hiddenFields(page, ['as_of'])}
      <label
        >Snapshot
        <select name="as_of">
          ${entries.map(
            ({ as_of }) => html`<option ${as_of === snapshot.asOf ? html`selected` : null}>${as_of}</option>`,
          )}
        </select></label
      >
      <button>Show</button>
      ${context.isCurrent ? null : html`<a href="${changed(page, { as_of: undefined })}">newest</a>`}
    </form>
    ${retractions.map(({ as_of, reason }) => html`<p>The snapshot of ${as_of} was withdrawn: ${reason}</p>`)}`
}
