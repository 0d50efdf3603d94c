/** GET /apps/{id} and its history.csv (CONTRACT 4.6), each read in one statement. */
import { z } from 'zod'
import { addDays, describeRange } from '../../pipeline/contract/calendar.ts'
import { SERIES_COLUMNS, seriesRowSchema } from '../../pipeline/contract/dataset.ts'
import { csvText, FORMATS } from '../datasets/formats.ts'
import { PARAMETERS } from '../datasets/rankings.ts'
import type { Snapshot } from '../datasets/snapshots/facts.ts'
import { windowUpTo, type DateWindow } from '../datasets/window.ts'
import { ApiError } from '../http/errors.ts'
import { APPS_PATH } from '../paths.ts'
import { shorten } from '../untrusted/shorten.ts'
import { chartFigure, figure, renderDocument } from './document.ts'
import { address, HTML, markup, table, type Html } from './html.ts'
import type { View } from './views.ts'

const daysSchema = z.array(seriesRowSchema.omit({ app_id: true, app_name: true }))
const rank = z.bigint().nullable()
const weeksSchema = z.array(z.object({ start: z.string(), end: z.string(), popular: rank, trending: rank }))
const appSchema = z.object({
  name: z.string(),
  tags: z.array(z.string()),
  /** Every day from its first with usage on, also those without usage or data; null if there is none. */
  days: daysSchema.nullable(),
  /** Its ranks, newest week first. */
  weeks: weeksSchema.nullable(),
})
type App = z.infer<typeof appSchema>

const ID = 'TRY_CAST($id AS BIGINT)'
const RANK = (sort: string, { start, end }: DateWindow) =>
  `(SELECT r.rank FROM ${sort}('${start}', '${end}') AS r WHERE r.app_id = ${ID})`
const WEEK = (week: DateWindow) => `{'start': '${week.start}', 'end': '${week.end}',
  popular: ${RANK('popular', week)}, trending: ${RANK('trending', week)}}`
const APP = (weeks: readonly DateWindow[]) => `
  SELECT a.app_name AS name, a.subcategories AS tags,
    (
      SELECT list({
        day: CAST(c.day AS VARCHAR), requests: CAST(coalesce(d.requests, 0) AS BIGINT),
        prompt_tokens: CAST(coalesce(d.prompt_tokens, 0) AS VARCHAR),
        completion_tokens: CAST(coalesce(d.completion_tokens, 0) AS VARCHAR),
        total_tokens: CAST(coalesce(CAST(d.prompt_tokens AS HUGEINT) + d.completion_tokens, 0) AS VARCHAR),
        coverage: c.status
      } ORDER BY c.day)
      FROM coverage AS c LEFT JOIN app_daily AS d ON d.day = c.day AND d.app_id = ${ID}
      WHERE c.day >= (SELECT min(f.day) FROM app_daily AS f WHERE f.app_id = ${ID})
    ) AS days,
    ${weeks.length === 0 ? 'NULL' : `[${weeks.map(WEEK).join(', ')}]`} AS weeks
  FROM apps AS a WHERE a.app_id = ${ID}`

/** @throws {ApiError} 404 with the reasons why an app may not be listed. */
async function readApp(snapshot: Snapshot, id: string, weeks: readonly DateWindow[] = []): Promise<App> {
  if (!/^\d{1,19}$/.test(id)) {
    throw new ApiError(404, `No app has the id ${shorten(id)}: ids are numbers, such as /apps/1`)
  }
  const [app] = await snapshot.query(APP(weeks), { id })
  if (app !== undefined) return appSchema.parse(app)
  throw new ApiError(
    404,
    `No app with the id ${id} is listed in the snapshot of ${snapshot.asOf}. An app is not listed if it is not ` +
      'registered or not public, or if it is an alias: then its usage counts for another app',
  )
}

/** The usage of an app by day, oldest first; a day without data is a row with coverage `missing`. */
export const historyFile: View = {
  contentType: FORMATS.csv.contentType,
  parameters: { as_of: PARAMETERS.as_of },
  async make({ snapshot, id }) {
    const { app_id: _id, app_name: _name, ...columns } = SERIES_COLUMNS
    const { days } = await readApp(snapshot, id)
    return csvText({ columns, rows: days ?? [] })
  },
}

const WEEKS = 12
const WEEK_DAYS = 7

export const appView: View = {
  contentType: HTML,
  parameters: { as_of: PARAMETERS.as_of },
  async make(context, given) {
    const { snapshot, id } = context
    const { as_of }: { as_of?: string } = given
    const weeks = Array.from({ length: WEEKS }, (_, index) =>
      windowUpTo(addDays(snapshot.dataThrough, -WEEK_DAYS * index), WEEK_DAYS),
    ).filter(({ start }) => start >= snapshot.firstDay)
    const app = await readApp(snapshot, id, weeks)
    const history = address(`${APPS_PATH}/${id}/history.csv`, { as_of })
    return renderDocument({
      title: app.name,
      description: `Tokens and requests of ${app.name} by day, and its ranks by week. ${snapshot.attribution}`,
      source: history,
      context,
      main: markup`${chartFigure(history, `Tokens per day of ${app.name}`)}
        <section>
          <p>
            ${app.tags.map((tag) => markup`<a href="${address('/', { category: tag, as_of })}">${tag}</a> · `)}
            ${totals(app)}
          </p>
          ${weeksTable(app)}
          <p>
            <a href="${address('/', { apps: id, as_of })}">Compare it in the rankings</a> ·
            <a href="${history}">history.csv</a>
          </p>
        </section>`,
    })
  },
}

function totals({ days }: App): Html {
  const [first] = days ?? []
  if (days === null || first === undefined) return markup`no usage of this app is part of the data`
  const tokens = days.reduce((sum, { total_tokens }) => sum + BigInt(total_tokens), 0n)
  const requests = days.reduce((sum, day) => sum + day.requests, 0n)
  return markup`first day ${first.day} · ${figure(tokens, 'tokens')} tokens and ${figure(requests, 'requests')}
  requests`
}

function weeksTable({ weeks }: App): Html {
  return table(
    [
      { head: 'Week', isName: true, show: ({ start, end }) => describeRange({ from: start, to: end }) },
      { head: 'Popular', kind: 'n', show: ({ popular }) => popular ?? '–' },
      { head: 'Trending', kind: 'n', show: ({ trending }) => trending ?? '–' },
    ],
    weeks ?? [],
  )
}
