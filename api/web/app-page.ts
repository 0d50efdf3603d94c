/** GET /apps/{id} and its history.csv (CONTRACT 4.6). */
import { z } from 'zod'
import { addDays } from '../../pipeline/contract/calendar.ts'
import { SERIES_COLUMNS, type SeriesRow } from '../../pipeline/contract/dataset.ts'
import { csvText, FORMATS } from '../datasets/formats.ts'
import { REPLY_PARAMETERS } from '../datasets/reply.ts'
import { readSeries } from '../datasets/series.ts'
import { windowUpTo, type DateWindow } from '../datasets/window.ts'
import { ApiError } from '../http/errors.ts'
import { APPS_PATH } from '../paths.ts'
import { shorten } from '../untrusted/json.ts'
import { chartFigure, figure, renderDocument, type View, type ViewContext } from './document.ts'
import { address, HTML, markup, type Html } from './html.ts'

const AS_OF = { as_of: REPLY_PARAMETERS.as_of }

const rank = z.bigint().nullable()
const appSchema = z.object({
  name: z.string(),
  tags: z.array(z.string()),
  /** Its ranks, newest week first. */
  weeks: z.array(z.object({ end: z.string(), popular: rank, trending: rank })),
})

const ID = 'TRY_CAST($id AS BIGINT)'
const RANK = (sort: string, { start_date, end_date }: DateWindow) =>
  `(SELECT r.rank FROM ${sort}('${start_date}', '${end_date}') AS r WHERE r.app_id = ${ID})`
const WEEK = (week: DateWindow) => `{'end': '${week.end_date}',
  popular: ${RANK('popular', week)}, trending: ${RANK('trending', week)}}`
const APP = (weeks: readonly DateWindow[]) => `
  SELECT a.app_name AS name, a.subcategories AS tags, [${weeks.map(WEEK).join(', ')}] AS weeks
  FROM apps AS a WHERE a.app_id = ${ID}`

/**
 * Reads the usage of an app by day from its first on, oldest first; a day without data is a row with coverage `missing`.
 * @throws ApiError 404 if no such app is listed.
 */
async function readHistory({ snapshot, id }: ViewContext): Promise<readonly SeriesRow[]> {
  const { as_of, first_day, data_through } = snapshot
  const window = { start_date: first_day, end_date: data_through }
  const { rows } = await readSeries(snapshot, /^\d+$/.test(id) ? id : '', window)
  if (rows.length === 0) {
    throw new ApiError(
      404,
      `No app with the id ${shorten(id)} is listed in the snapshot of ${as_of}: ids are numbers, such as /apps/1. ` +
        'An app is not listed if it is not registered or not public, or if it is an alias: then its usage counts for another app',
    )
  }
  const first = rows.findIndex(({ requests, total_tokens }) => requests > 0n || total_tokens !== '0')
  return first === -1 ? [] : rows.slice(first)
}

export const historyFile: View = {
  contentType: FORMATS.csv.contentType,
  parameters: AS_OF,
  async make(context) {
    const { app_id: _id, app_name: _name, ...columns } = SERIES_COLUMNS
    return csvText({ columns, rows: await readHistory(context) })
  },
}

/** Weeks in the table of ranks. */
const WEEKS = 12

export const appView: View = {
  contentType: HTML,
  parameters: AS_OF,
  async make(context, { as_of }: { as_of?: string }) {
    const { snapshot, id } = context
    const weeks = Array.from({ length: WEEKS }, (_, index) =>
      windowUpTo(addDays(snapshot.data_through, -7 * index), 7),
    ).filter(({ start_date }) => start_date >= snapshot.first_day)
    const rows = await readHistory(context)
    const [found] = await snapshot.query(APP(weeks), { id })
    const app = appSchema.parse(found)
    const tags = app.tags.map(
      (tag) => markup`<a href="${address('/', { category: tag, as_of })}">${tag}</a> · `,
    )
    return renderDocument({
      title: app.name,
      series: seriesOf(rows),
      context,
      main: markup`${rows.length > 0 && chartFigure(`Tokens per day, ${app.name}`)}
        <section>
          <p>${tags} ${totals(rows)}</p>
          ${weeks.length > 0 && weeksTable(app)}
          <p>
            <a href="${address('/', { apps: id, as_of })}">Compare it in the rankings</a> ·
            <a href="${address(`${APPS_PATH}/${id}/history.csv`, { as_of })}">history.csv</a>
          </p>
        </section>`,
    })
  },
}

function totals(rows: readonly SeriesRow[]): Html {
  const [first] = rows
  if (first === undefined) return markup`no usage of this app is part of the data`
  const tokens = rows.reduce((sum, { total_tokens }) => sum + BigInt(total_tokens), 0n)
  const requests = rows.reduce((sum, row) => sum + row.requests, 0n)
  return markup`first day ${first.day} · tokens: ${figure(tokens, 'tokens')} · requests: ${figure(requests, 'requests')}`
}

/** Prompt and completion tokens by day. */
function seriesOf(rows: readonly SeriesRow[]) {
  const item = (name: string, column: 'prompt_tokens' | 'completion_tokens') => {
    return { id: name, name, values: rows.map((row) => (row.coverage === 'missing' ? null : row[column])) }
  }
  return {
    days: rows.map(({ day }) => day),
    coverage: rows.map(({ coverage }) => coverage),
    items: [item('Prompt tokens', 'prompt_tokens'), item('Completion tokens', 'completion_tokens')],
  }
}

function weeksTable({ weeks }: z.infer<typeof appSchema>): Html {
  const row = ({ end, popular, trending }: (typeof weeks)[number]) => markup`<tr>
      <th scope="row">${end}</th><td class="n">${popular ?? '–'}</td><td class="n">${trending ?? '–'}</td>
    </tr>`
  return markup`<table>
    <thead>
      <tr><th>Week to</th><th class="n">Popular rank</th><th class="n">Trending rank</th></tr>
    </thead>
    <tbody>${weeks.map(row)}</tbody>
  </table>`
}
