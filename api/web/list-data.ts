/** Reads a list with its series by day in one statement; serves it as /rankings.json, /rankings.csv and for models. */
import { z } from 'zod'
import { daysBetween } from '../../pipeline/contract/calendar.ts'
import { COVERAGE_STATUSES, RANKING_COLUMNS } from '../../pipeline/contract/dataset.ts'
import { csvText, FORMATS } from '../datasets/formats.ts'
import { MAX_OFFSET } from '../datasets/rankings.ts'
import { metaOf } from '../datasets/reply.ts'
import type { Snapshot, SnapshotFacts } from '../datasets/snapshots/facts.ts'
import { daysOf, windowsBefore, windowUpTo, type DateWindow } from '../datasets/window.ts'
import { jsonText } from '../http/call.ts'
import { invalidParameter } from '../http/query-parameters.ts'
import type { View } from './document.ts'
import {
  type List,
  type ListParameters,
  LISTS,
  OF_THE_JSON,
  resolveList,
  type Subject,
} from './parameters.ts'

const itemSchema = z.object({
  /** app_id or model_permaslug. */
  id: z.string(),
  name: z.string(),
  tags: z.array(z.string()),
  /** Whether the filter lets it through; a drawn app may be outside. */
  in_list: z.boolean(),
  /** Whether it is a row of the requested ranks; otherwise it is drawn. */
  in_page: z.boolean(),
  /** Null without usage in the window. */
  rank: z.bigint().nullable(),
  requests: z.bigint(),
  tokens: z.bigint(),
  /** Tokens above the average of the three windows before; only in trending. */
  excess: z.bigint().nullable(),
  /** Rank in the window before; null if it was not in that list. */
  earlier: z.bigint().nullable(),
  /** Usage on each of `days`; null without data. */
  values: z.array(z.bigint().nullable()),
})
const dataSchema = z.object({
  /** Number of ranks. */
  ranks: z.bigint(),
  /** The rows, and what is drawn beside them, by rank. */
  items: z.array(itemSchema),
  /** The days of the window, or the 30 days up to its end if that is more, with the usage of the whole list. */
  days: z.array(z.object({ day: z.string(), coverage: z.enum(COVERAGE_STATUSES), total: z.bigint() })),
})

export type Item = z.infer<typeof itemSchema>
export type ListData = z.infer<typeof dataSchema> & {
  /** What is to be drawn, but is not public in this snapshot. */
  readonly unknown: readonly string[]
  /** The days of the window alone, and the usage of the whole list on them. */
  readonly window: ListData['days']
  readonly total: bigint
  /** Whether ranks are compared with the window before: if it has most of its days. */
  readonly isCompared: boolean
  /** Whether there is a page of further ranks. */
  readonly hasNext: boolean
}

/** Days of the small chart of each row, and the least that are read. */
export const RECENT_DAYS = 30

const USED = `CAST(CASE WHEN $measure = 'requests' THEN d.requests
    ELSE CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT) END AS HUGEINT)`
const BETWEEN = (first: string, last: string) =>
  `d.day BETWEEN CAST($${first} AS DATE) AND CAST($${last} AS DATE)`

/** The parts of the statement that depend on the subject: each is a SELECT over the snapshot. */
type Parts = {
  /** All ranks of a window: rank, id, name, requests, tokens, excess. */
  readonly ranking: (first: string, last: string) => string
  /** All that may be drawn: id, name, tags, in_list. */
  readonly items: string
  /** id, day, used of `shown`. */
  readonly usage: string
  /** day, used of all that the filter lets through; may read `usage`. */
  readonly totals: string
}

function partsOfApps({ order, measure, category, subcategory }: List): Parts {
  const macro = order === 'requests' ? 'popular_by_requests' : order
  // Without a filter the totals cost no scan.
  const isWhole = category === null && subcategory === null
  return {
    ranking: (first, last) => `
      SELECT rank, CAST(app_id AS VARCHAR) AS id, app_name AS name, total_requests AS requests,
        CAST(total_tokens AS HUGEINT) AS tokens,
        CAST(${order === 'trending' ? 'excess_tokens' : 'NULL'} AS HUGEINT) AS excess
      FROM ${macro}($${first}, $${last}, category := $category, subcategory := $subcategory)`,
    items: `
      SELECT CAST(a.app_id AS VARCHAR) AS id, a.app_name AS name, a.subcategories AS tags,
        a.app_id IN (SELECT f.app_id FROM filtered_apps($category, $subcategory) AS f) AS in_list
      FROM apps AS a`,
    usage: `
      SELECT CAST(d.app_id AS VARCHAR) AS id, d.day, ${USED} AS used FROM app_daily AS d
      WHERE ${BETWEEN('first', 'end')} AND d.app_id IN (SELECT CAST(s.id AS BIGINT) FROM shown AS s)`,
    totals: isWhole
      ? `SELECT c.day, CAST(c.total_${measure} AS HUGEINT) AS used FROM coverage AS c`
      : `SELECT d.day, sum(${USED}) AS used
      FROM app_daily AS d JOIN filtered_apps($category, $subcategory) AS f ON f.app_id = d.app_id
      WHERE ${BETWEEN('first', 'end')} GROUP BY d.day`,
  }
}

const MODELS: Parts = {
  ranking: (first, last) => `
    SELECT row_number() OVER (ORDER BY sum(${USED}) DESC, d.model_permaslug) AS rank, d.model_permaslug AS id,
      d.model_permaslug AS name, CAST(sum(d.requests) AS BIGINT) AS requests,
      sum(CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT)) AS tokens,
      CAST(NULL AS HUGEINT) AS excess
    FROM model_daily AS d
    WHERE ${BETWEEN(first, last)} AND d.model_permaslug <> 'other'
    GROUP BY d.model_permaslug HAVING sum(d.requests) > 0`,
  items: `
    SELECT DISTINCT m.model_permaslug AS id, m.model_permaslug AS name, CAST([] AS VARCHAR[]) AS tags,
      true AS in_list
    FROM model_daily AS m`,
  usage: `
    SELECT d.model_permaslug AS id, d.day, ${USED} AS used FROM model_daily AS d WHERE ${BETWEEN('first', 'end')}`,
  totals: 'SELECT u.day, sum(u.used) AS used FROM usage AS u GROUP BY u.day',
}

const statement = ({ ranking, items, usage, totals }: Parts, isCompared: boolean) => `
WITH ranking AS MATERIALIZED (${ranking('start', 'end')}),
found AS (
  SELECT r.*, row_number() OVER (ORDER BY r.rank) AS place FROM ranking AS r
  WHERE contains(lower(r.name), lower($q))
),
earlier AS (${
  isCompared
    ? ranking('earlier_start', 'earlier_end')
    : 'SELECT CAST(NULL AS BIGINT) AS rank, NULL AS id WHERE false'
}),
shown AS MATERIALIZED (
  SELECT i.*, r.rank, coalesce(r.requests, 0) AS requests, coalesce(r.tokens, 0) AS tokens, r.excess,
    coalesce(f.place > $offset AND f.place <= $offset + $limit, false) AS in_page
  FROM (${items}) AS i LEFT JOIN ranking AS r ON r.id = i.id LEFT JOIN found AS f ON f.id = i.id
  WHERE (f.place > $offset AND f.place <= $offset + $limit) OR list_contains(string_split($drawn, ','), i.id)
),
days AS MATERIALIZED (
  SELECT CAST(g.day AS DATE) AS day, coalesce(c.status, 'missing') AS coverage
  FROM generate_series(CAST($first AS TIMESTAMP), CAST($end AS TIMESTAMP), INTERVAL 1 DAY) AS g(day)
  LEFT JOIN coverage AS c ON c.day = CAST(g.day AS DATE)
),
usage AS (${usage}),
daily AS (
  SELECT s.id, list(CASE WHEN d.coverage <> 'missing' THEN coalesce(u.used, 0) END ORDER BY d.day) AS values
  FROM shown AS s CROSS JOIN days AS d LEFT JOIN usage AS u ON u.id = s.id AND u.day = d.day GROUP BY s.id
)
SELECT
  (SELECT count(*) FROM found) AS ranks,
  (
    SELECT coalesce(list({id: s.id, name: s.name, tags: s.tags, in_list: s.in_list, in_page: s.in_page, rank: s.rank,
      requests: s.requests, tokens: s.tokens, excess: s.excess, earlier: e.rank, values: v.values
    } ORDER BY s.rank, s.id), [])
    FROM shown AS s JOIN daily AS v ON v.id = s.id LEFT JOIN earlier AS e ON e.id = s.id
  ) AS items,
  (
    SELECT list({day: CAST(d.day AS VARCHAR), coverage: d.coverage, total: coalesce(t.used, 0)} ORDER BY d.day)
    FROM days AS d LEFT JOIN (${totals}) AS t ON t.day = d.day
  ) AS days`

/** Reads the rows of a list, what is drawn, and their usage by day. */
export async function readList(snapshot: Snapshot, list: List): Promise<ListData> {
  const { subject, category, subcategory, order: _order, drawn = [], ...rest } = list
  const { start, end, limit, offset } = rest
  const before = windowsBefore(list, 1)
  const isCompared = 2 * daysWithout(snapshot, before) < daysOf(before)
  const recent = windowUpTo(end, RECENT_DAYS).start
  const values = {
    ...(isCompared && { earlier_start: before.start, earlier_end: before.end }),
    ...(subject === 'apps' && { category, subcategory }),
    ...rest,
    first: start < recent ? start : recent,
    drawn: drawn.join(','),
  }
  const parts = subject === 'apps' ? partsOfApps(list) : MODELS
  const [row] = await snapshot.query(statement(parts, isCompared), values)
  const data = dataSchema.parse(row)
  const unknown = drawn.filter((id) => !data.items.some((item) => item.id === id))
  const next = offset + limit
  const window = data.days.slice(-daysOf(list))
  const total = window.reduce((sum, day) => sum + day.total, 0n)
  return { ...data, unknown, window, total, isCompared, hasNext: next <= MAX_OFFSET && next < data.ranks }
}

/** Number of days of `window` without delivered usage, including those before the first day of the data. */
export function daysWithout(
  { firstDay, daysMissing }: Pick<SnapshotFacts, 'firstDay' | 'daysMissing'>,
  { start, end }: DateWindow,
): number {
  const before = Math.min(Math.max(daysBetween(start, firstDay), 0), daysOf({ start, end }))
  return before + daysMissing.filter((day) => day >= start && day <= end).length
}

/** The addresses of a list's files. */
export const FILES = {
  apps: { csv: '/rankings.csv', json: '/rankings.json' },
  models: { csv: '/models.csv', json: '/models.json' },
} as const satisfies Readonly<Record<Subject, object>>

/** Spreadsheets take CSV without it for another character set. */
const BYTE_ORDER_MARK = '\u{feff}'

/** The rows of a list in a format; JSON also has the series by day, if the request wants them. */
export function listFile(subject: Subject, format: 'csv' | 'json'): View {
  const { app_id: _id, app_name: _name, ...figures } = RANKING_COLUMNS
  const columns = subject === 'apps' ? RANKING_COLUMNS : ({ model_permaslug: 'text', ...figures } as const)
  return {
    contentType: FORMATS[format].contentType,
    parameters: { ...LISTS[subject], ...(format === 'json' && OF_THE_JSON) },
    async make({ snapshot }, given) {
      const parameters: ListParameters = given
      const list = resolveList(subject, parameters, snapshot)
      const data = await readList(snapshot, list)
      if (data.unknown.length > 0) {
        throw invalidParameter(subject, data.unknown.join(','), `public ${subject} of this snapshot`)
      }
      const rows = data.items.flatMap(({ in_page, id, name, rank, requests, tokens }) => {
        const item = subject === 'apps' ? { app_id: BigInt(id), app_name: name } : { model_permaslug: id }
        const row = { ...item, rank: rank ?? 0n, total_requests: requests, total_tokens: String(tokens) }
        return in_page ? [row] : []
      })
      if (format === 'csv') return `${BYTE_ORDER_MARK}${csvText({ columns, rows })}`
      const meta = metaOf(snapshot, list.start, list.end)
      const series = parameters.series && { measure: list.measure, ...seriesOf(data) }
      return jsonText({ data: rows, meta, series })
    },
  }
}

const texts = (values: Item['values']) => values.map((value) => value?.toString() ?? null)

/** Usage by day of the rows and of what else is drawn. */
export function seriesOf({ window, items }: ListData) {
  return {
    days: window.map(({ day }) => day),
    coverage: window.map(({ coverage }) => coverage),
    total: texts(window.map(({ coverage, total }) => (coverage === 'missing' ? null : total))),
    items: items.map(({ id, name, in_list, values }) => {
      return { id, name, in_list, values: texts(values.slice(-window.length)) }
    }),
  }
}
