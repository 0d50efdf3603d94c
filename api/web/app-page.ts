/** GET /apps/{id} and its history.csv (CONTRACT 4.6), each read in one statement. */
import { z } from 'zod'
import { addDays } from '../../pipeline/contract/calendar.ts'
import { SERIES_COLUMNS } from '../../pipeline/contract/dataset.ts'
import { csvText, FORMATS } from '../datasets/formats.ts'
import { PARAMETERS } from '../datasets/rankings.ts'
import { readSeries } from '../datasets/series.ts'
import type { SnapshotFacts } from '../datasets/snapshots/facts.ts'
import { windowUpTo, type DateWindow } from '../datasets/window.ts'
import { ApiError } from '../http/errors.ts'
import { APPS_PATH } from '../paths.ts'
import { shorten } from '../untrusted/json.ts'
import { chartFigure, figure, renderDocument, type View } from './document.ts'
import { address, HTML, markup, table, type Html } from './html.ts'

const rank = z.bigint().nullable()
const appSchema = z.object({
  name: z.string(),
  tags: z.array(z.string()),
  /** Its usage of all days; `first` is null without any. */
  usage: z.object({ first: z.string().nullable(), tokens: z.bigint(), requests: z.bigint() }),
  /** Its ranks, newest week first. */
  weeks: z.array(z.object({ end: z.string(), popular: rank, trending: rank })),
})

const ID = 'TRY_CAST($id AS BIGINT)'
const RANK = (sort: string, { start, end }: DateWindow) =>
  `(SELECT r.rank FROM ${sort}('${start}', '${end}') AS r WHERE r.app_id = ${ID})`
const WEEK = (week: DateWindow) => `{'end': '${week.end}',
  popular: ${RANK('popular', week)}, trending: ${RANK('trending', week)}}`
const APP = (weeks: readonly DateWindow[]) => `
  SELECT a.app_name AS name, a.subcategories AS tags, [${weeks.map(WEEK).join(', ')}] AS weeks,
    (
      SELECT {'first': CAST(min(d.day) AS VARCHAR), requests: CAST(coalesce(sum(d.requests), 0) AS HUGEINT),
        tokens: CAST(coalesce(sum(CAST(d.prompt_tokens AS HUGEINT) + d.completion_tokens), 0) AS HUGEINT)}
      FROM app_daily AS d WHERE d.app_id = ${ID}
    ) AS usage
  FROM apps AS a WHERE a.app_id = ${ID}`

/** The id in a path, which is no app's if it is not a number. */
function idOf(text: string): string {
  if (/^\d{1,19}$/.test(text)) return text
  throw new ApiError(404, `No app has the id ${shorten(text)}: ids are numbers, such as /apps/1`)
}

function unlisted(id: string, { asOf }: SnapshotFacts): ApiError {
  return new ApiError(
    404,
    `No app with the id ${id} is listed in the snapshot of ${asOf}. An app is not listed if it is not ` +
      'registered or not public, or if it is an alias: then its usage counts for another app',
  )
}

/** The usage of an app by day from its first on, oldest first; a day without data is a row with coverage `missing`. */
export const historyFile: View = {
  contentType: FORMATS.csv.contentType,
  parameters: { as_of: PARAMETERS.as_of },
  async make({ snapshot, id }) {
    const { app_id: _id, app_name: _name, ...columns } = SERIES_COLUMNS
    const { firstDay: start, dataThrough: end } = snapshot
    const { rows, unknown } = await readSeries(snapshot, [BigInt(idOf(id))], { start, end })
    if (unknown.length > 0) throw unlisted(id, snapshot)
    const first = rows.findIndex(({ requests, total_tokens }) => requests > 0n || total_tokens !== '0')
    return csvText({ columns, rows: first === -1 ? [] : rows.slice(first) })
  },
}

const WEEKS = 12
const WEEK_DAYS = 7

export const appView: View = {
  contentType: HTML,
  parameters: { as_of: PARAMETERS.as_of },
  async make(context, given) {
    const { snapshot } = context
    const id = idOf(context.id)
    const { as_of }: { as_of?: string } = given
    const weeks = Array.from({ length: WEEKS }, (_, index) =>
      windowUpTo(addDays(snapshot.dataThrough, -WEEK_DAYS * index), WEEK_DAYS),
    ).filter(({ start }) => start >= snapshot.firstDay)
    const [found] = await snapshot.query(APP(weeks), { id })
    if (found === undefined) throw unlisted(id, snapshot)
    const app = appSchema.parse(found)
    const history = address(`${APPS_PATH}/${id}/history.csv`, { as_of })
    const tags = app.tags.map(
      (tag) => markup`<a href="${address('/', { category: tag, as_of })}">${tag}</a> · `,
    )
    return renderDocument({
      title: app.name,
      description: `Tokens and requests of ${app.name} by day, and its ranks by week. ${snapshot.attribution}`,
      source: history,
      context,
      main: markup`${chartFigure(history, `Tokens per day, ${app.name}`)}
        <section>
          <p>${tags} ${totals(app)}</p>
          ${weeksTable(app)}
          <p>
            <a href="${address('/', { apps: id, as_of })}">Compare it in the rankings</a> ·
            <a href="${history}">history.csv</a>
          </p>
        </section>`,
    })
  },
}

type App = z.infer<typeof appSchema>

function totals({ usage: { first, tokens, requests } }: App): Html {
  if (first === null) return markup`no usage of this app is part of the data`
  return markup`first day ${first} · ${figure(tokens, 'tokens')} tokens and ${figure(requests, 'requests')}
  requests`
}

function weeksTable({ weeks }: App): Html {
  return table(
    [
      { head: 'Week to', isName: true, show: ({ end }) => end },
      { head: 'Popular rank', kind: 'n', show: ({ popular }) => popular ?? '–' },
      { head: 'Trending rank', kind: 'n', show: ({ trending }) => trending ?? '–' },
    ],
    weeks,
  )
}
