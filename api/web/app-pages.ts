/** GET /apps/{app_id}, its history.csv, and the search /apps?q= (CONTRACT 4.6). */
import type { Request } from 'express'
import { z } from 'zod'
import type { Columns } from '../../pipeline/contract/dataset.ts'
import { describeRange } from '../../pipeline/contract/calendar.ts'
import { csvText, FORMATS } from '../datasets/formats.ts'
import { PARAMETERS } from '../datasets/rankings.ts'
import { ApiError } from '../http/errors.ts'
import { badRequest, readParameters, type ParameterTable } from '../http/protocol/query-parameters.ts'
import { queryString } from '../http/respond.ts'
import { APPS_PATH } from '../paths.ts'
import { shorten } from '../untrusted/shorten.ts'
import { findApps, readApp, type App } from './app-data.ts'
import { address } from './addresses.ts'
import { chartFigure, HTML, renderDocument } from './document.ts'
import { firstLine } from './first-line.ts'
import { html, type Html } from './html.ts'
import { compact, counted, even, exact } from './numbers.ts'
import type { View } from './views.ts'

interface AppRequest {
  readonly id: string
  readonly parameters: { readonly as_of?: string }
}

interface SearchRequest {
  readonly parameters: { readonly as_of?: string; readonly q?: string }
}

const AS_OF = { as_of: PARAMETERS.as_of } as const
const SEARCH = {
  ...AS_OF,
  q: { schema: z.string().min(1).max(100), allowed: 'a part of the name of an app, at most 100 characters' },
} as const

function read(table: ParameterTable, request: Request): Readonly<Record<string, unknown>> {
  // Forms send every field, even empty ones.
  const filled = [...new URLSearchParams(queryString(request))].filter(([, value]) => value !== '')
  const { values, faults } = readParameters(table, new URLSearchParams(filled).toString())
  if (faults.length > 0) throw badRequest(faults)
  return values
}

function readAppRequest(request: Request): AppRequest {
  const id = request.params['app_id']
  if (typeof id !== 'string' || !/^\d{1,19}$/.test(id)) {
    throw new ApiError(404, `No app has the id ${shorten(String(id))}: ids are numbers, such as /apps/1`)
  }
  return { id, parameters: read(AS_OF, request) }
}

const HISTORY = {
  day: 'text',
  requests: 'integer',
  prompt_tokens: 'decimal',
  completion_tokens: 'decimal',
  total_tokens: 'decimal',
  coverage: 'text',
} as const satisfies Columns

/** The usage of an app by day, oldest first; a day without data is a row with coverage `missing`. */
export const historyFile: View<AppRequest> = {
  name: 'history.csv',
  contentType: FORMATS.csv.contentType,
  read: readAppRequest,
  async make({ snapshot }, { id }) {
    const { days } = await readApp(snapshot, id)
    return csvText({ columns: HISTORY, rows: days })
  },
}

export const appView: View<AppRequest> = {
  name: 'app',
  contentType: HTML,
  read: readAppRequest,
  async make(context, { id, parameters }) {
    const { snapshot } = context
    const app = await readApp(snapshot, id, { withRanks: true })
    const history = address(`${APPS_PATH}/${id}/history.csv`, parameters)
    const label = `Tokens per day of ${app.name}`
    return renderDocument({
      title: app.name,
      description: `Tokens and requests of ${app.name} by day, and its ranks by week. ${snapshot.attribution}`,
      source: history,
      header: firstLine(app.name, context),
      main: html`${chartFigure(history, 'stacked', label)}
        <section>
          <p class="caption">${facts(app, parameters.as_of)}</p>
          ${weeksTable(app)}
          <p>
            <a href="${address('/', { ...parameters, apps: id })}">Compare it in the rankings</a> ·
            <a href="${history}">history.csv</a>
          </p>
        </section>`,
      foot: html`<p>${snapshot.attribution}. ${snapshot.sources}</p>`,
    })
  },
}

function facts({ tags, days, weeks }: App, asOf: string | undefined): Html {
  const links = tags.map(
    (tag) => html`<a href="${address('/', { category: tag, as_of: asOf })}">${tag}</a> · `,
  )
  const [first] = days
  if (first === undefined) return html`${links} no usage of this app is part of the data`
  const tokens = days.reduce((sum, { total_tokens }) => sum + total_tokens, 0n)
  const requests = days.reduce((sum, day) => sum + day.requests, 0n)
  const used = days.filter((day) => day.requests > 0n || day.total_tokens > 0n).length
  const best = weeks.reduce<bigint | undefined>(
    (least, { popular: rank }) =>
      rank === undefined || (least !== undefined && least < rank) ? least : rank,
    undefined,
  )
  return html`${links} first day ${first.day} ·
    <span title="${exact(tokens)}">${compact(tokens)} tokens</span> and
    <span title="${exact(requests)}">${compact(requests)} requests</span> on ${counted(used, 'day')}
    ${best === undefined ? null : html`· best weekly rank ${best}`}`
}

function weeksTable({ weeks }: App): Html {
  return html`<table class="plain">
    <thead>
      <tr>
        <th scope="col">Week</th>
        <th scope="col" class="n">Popular</th>
        <th scope="col" class="n">Trending</th>
      </tr>
    </thead>
    <tbody>
      ${weeks.map(
        ({ week, popular, trending }) =>
          html`<tr>
            <th scope="row">${describeRange({ from: week.start, to: week.end })}</th>
            <td class="n">${popular ?? '–'}</td>
            <td class="n">${trending ?? '–'}</td>
          </tr>`,
      )}
    </tbody>
  </table>`
}

/** The apps whose names have a text; the script of the page lists them below its field. */
export const searchView: View<SearchRequest> = {
  name: 'search',
  contentType: HTML,
  read: (request) => ({ parameters: read(SEARCH, request) }),
  async make(context, { parameters }) {
    const { q, as_of } = parameters
    const found = q === undefined ? [] : await findApps(context.snapshot, q)
    return renderDocument({
      title: 'Find an app',
      description: 'Search for an app of the rankings by a part of its name.',
      header: firstLine('Find an app', context),
      main: html`<section>
        <p class="caption">
          ${q === undefined ? 'Enter a part of a name.' : html`${counted(found.length, 'app')} with <q>${q}</q> in the name, by tokens of the last 30 days.`}
        </p>
        <ul class="found">
          ${found.map(
            ({ id, name, tokens }) =>
              html`<li>
                <a data-id="${id}" href="${address(`${APPS_PATH}/${id}`, { as_of })}"><bdi>${name}</bdi></a>
                ${even(tokens)} tokens
              </li>`,
          )}
        </ul>
      </section>`,
    })
  },
}
