/**
 * The lists that `/` and `/models` show (CONTRACT 4.6): their parameters, which are the API's and a few for people, and
 * their rows with usage by day, read in one statement.
 */
import { z } from 'zod'
import { FLOOR_DATE } from '../../pipeline/contract/calendar.ts'
import { COVERAGE_STATUSES } from '../../pipeline/contract/dataset.ts'
import { CATEGORIES, SUBCATEGORIES } from '../../pipeline/contract/taxonomy.ts'
import { PARAMETERS, resolveQuery, type RankingsQuery } from '../datasets/rankings.ts'
import type { Snapshot } from '../datasets/snapshots/facts.ts'
import { daysOf, earlier, later, windowsBefore, windowUpTo } from '../datasets/window.ts'
import { invalidParameter, oneOf, type Values } from '../http/query-parameters.ts'
import { MODELS_PAGE_PATH } from '../paths.ts'

/** The addresses of each list: its page and its files. */
export const ADDRESSES = {
  apps: { page: '/', csv: '/rankings.csv', json: '/rankings.json' },
  models: { page: MODELS_PAGE_PATH, csv: '/models.csv', json: '/models.json' },
} as const

/** What a list ranks. */
export type Subject = keyof typeof ADDRESSES

/** Windows that move with the data, in days. */
export const WINDOWS = [1, 7, 30, 90, 365] as const

/** What the chart draws: it has seven colours. */
const drawn = (item: string) => ({
  schema: z.string().regex(new RegExp(`^(?:none|${item}(?:,${item}){0,6})$`)),
  allowed: 'up to 7 of the list, separated by commas, or none',
})

const { sort: _sort, category: _category, subcategory: TAG, format: _format, ...OF_ALL } = PARAMETERS
const SHARED = {
  ...OF_ALL,
  days: {
    schema: z.enum(WINDOWS.map(String)).transform(Number),
    allowed: `one of ${WINDOWS.join(', ')}, instead of start_date`,
  },
  q: { schema: z.string().trim().max(100), allowed: 'a part of a name, at most 100 characters' },
  /** Of the page. */
  chart: oneOf(['stacked', 'lines']),
  /** Of the JSON. */
  series: oneOf(['1']),
} as const

/** The parameters of each list. */
export const LISTS = {
  apps: {
    ...SHARED,
    sort: oneOf(['popular', 'trending', 'requests']),
    // One field of a form has both, so that it works without a script.
    category: oneOf([...CATEGORIES, ...SUBCATEGORIES]),
    subcategory: TAG,
    apps: drawn(String.raw`\d{1,19}`),
  },
  models: { ...SHARED, sort: oneOf(['popular', 'requests']), models: drawn('[^,]{1,200}') },
} as const

export type ListParameters = Omit<Values<typeof LISTS.models>, 'sort'> & Values<typeof LISTS.apps>

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
  /** Usage on each day, as text; null without data. */
  values: z.array(z.string().nullable()),
})
const dataSchema = z.object({
  /** Number of ranks. */
  ranks: z.bigint(),
  /** The rows, and what is drawn beside them, by rank. */
  items: z.array(itemSchema),
  /** The days of the window, or the 30 days up to its end if that is more, with the usage of the whole list. */
  days: z.array(
    z.object({ day: z.string(), coverage: z.enum(COVERAGE_STATUSES), total: z.string().nullable() }),
  ),
})

export type Item = z.infer<typeof itemSchema>

/** A list with every default applied, and its data. */
export type List = Query &
  z.infer<typeof dataSchema> & {
    /** What is to be drawn, but is not public in this snapshot. */
    readonly unknown: readonly string[]
    /** The days of the window alone, and the usage of the whole list on them. */
    readonly window: List['days']
    readonly total: bigint
  }

type Query = Omit<RankingsQuery, 'sort'> & {
  readonly subject: Subject
  readonly order: 'popular' | 'trending' | 'requests'
  readonly measure: 'tokens' | 'requests'
  /** A part of the names; empty for all. */
  readonly q: string
}

/** Days of the small chart of each row, and the least that are read. */
export const RECENT_DAYS = 30

/**
 * Reads the rows of a list, what is drawn, and their usage by day.
 * @throws ApiError 400 for parameters that are valid alone, but not together.
 */
export async function readList(snapshot: Snapshot, subject: Subject, given: ListParameters): Promise<List> {
  const query = resolveList(subject, given, snapshot)
  const { subject: _subject, order: _order, measure: _measure, category, subcategory, ...page } = query
  const chosen = given[subject] ?? 'none'
  const ids = chosen === 'none' ? [] : chosen.split(',')
  const recent = windowUpTo(page.end_date, RECENT_DAYS).start_date
  const before = windowsBefore(query, 1)
  const values = {
    ...page,
    ...(subject === 'apps' && { category, subcategory }),
    drawn: ids.join(','),
    first: earlier(page.start_date, recent),
    earlier_start: before.start_date,
    // The macros refuse an end before the floor.
    earlier_end: later(before.end_date, FLOOR_DATE),
  }
  const [row] = await snapshot.query(statement(PARTS[subject](query)), values)
  const data = dataSchema.parse(row)
  const window = data.days.slice(-daysOf(query))
  const unknown = ids.filter((id) => !data.items.some((item) => item.id === id))
  const total = window.reduce((sum, day) => sum + BigInt(day.total ?? 0), 0n)
  return { ...query, ...data, unknown, window, total }
}

function resolveList(subject: Subject, given: ListParameters, snapshot: Snapshot): Query {
  const { category: either, sort: order = 'popular', q = '', ...sent } = given
  if (sent.days !== undefined && sent.start_date !== undefined) {
    throw invalidParameter('days', String(sent.days), SHARED.days.allowed)
  }
  const group = CATEGORIES.find((each) => each === either)
  const tag = sent.subcategory ?? SUBCATEGORIES.find((each) => each === either)
  const filter = { ...(group && { category: group }), ...(tag && { subcategory: tag }) }
  const { sort: _apiSort, ...query } = resolveQuery({ ...sent, ...filter }, snapshot)
  return { ...query, subject, order, measure: order === 'requests' ? 'requests' : 'tokens', q }
}

const BETWEEN = (first: string, last: string) =>
  `d.day BETWEEN CAST($${first} AS DATE) AND CAST($${last} AS DATE)`
const TOKENS = 'CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT)'
const USED = { tokens: TOKENS, requests: 'd.requests' } as const

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

function partsOfApps({ order, measure, category, subcategory }: Query): Parts {
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
      SELECT CAST(d.app_id AS VARCHAR) AS id, d.day, ${USED[measure]} AS used FROM app_daily AS d
      WHERE ${BETWEEN('first', 'end_date')} AND d.app_id IN (SELECT CAST(s.id AS BIGINT) FROM shown AS s)`,
    totals: isWhole
      ? `SELECT c.day, c.total_${measure} AS used FROM coverage AS c`
      : `SELECT d.day, sum(${USED[measure]}) AS used
      FROM app_daily AS d JOIN filtered_apps($category, $subcategory) AS f ON f.app_id = d.app_id
      WHERE ${BETWEEN('first', 'end_date')} GROUP BY d.day`,
  }
}

function partsOfModels({ measure }: Query): Parts {
  return {
    ranking: (first, last) => `
      SELECT row_number() OVER (ORDER BY sum(${USED[measure]}) DESC, d.model_permaslug) AS rank,
        d.model_permaslug AS id, d.model_permaslug AS name, CAST(sum(d.requests) AS BIGINT) AS requests,
        sum(${TOKENS}) AS tokens, CAST(NULL AS HUGEINT) AS excess
      FROM model_daily AS d
      WHERE ${BETWEEN(first, last)} AND d.model_permaslug <> 'other'
      GROUP BY d.model_permaslug HAVING sum(d.requests) > 0`,
    items: `
      SELECT DISTINCT m.model_permaslug AS id, m.model_permaslug AS name, CAST([] AS VARCHAR[]) AS tags,
        true AS in_list
      FROM model_daily AS m`,
    usage: `
      SELECT d.model_permaslug AS id, d.day, ${USED[measure]} AS used
      FROM model_daily AS d WHERE ${BETWEEN('first', 'end_date')}`,
    totals: 'SELECT u.day, sum(u.used) AS used FROM usage AS u GROUP BY u.day',
  }
}

const PARTS = { apps: partsOfApps, models: partsOfModels } as const

const statement = ({ ranking, items, usage, totals }: Parts) => `
WITH ranking AS MATERIALIZED (${ranking('start_date', 'end_date')}),
earlier AS (${ranking('earlier_start', 'earlier_end')}),
found AS (
  SELECT r.id, row_number() OVER (ORDER BY r.rank) - $offset BETWEEN 1 AND $limit AS in_page FROM ranking AS r
  WHERE contains(lower(r.name), lower($q))
),
shown AS MATERIALIZED (
  SELECT i.*, r.rank, coalesce(r.requests, 0) AS requests, coalesce(r.tokens, 0) AS tokens, r.excess,
    coalesce(f.in_page, false) AS in_page
  FROM (${items}) AS i LEFT JOIN ranking AS r ON r.id = i.id LEFT JOIN found AS f ON f.id = i.id
  WHERE f.in_page OR list_contains(string_split($drawn, ','), i.id)
),
days AS (SELECT d.day, d.status AS coverage FROM coverage AS d WHERE ${BETWEEN('first', 'end_date')}),
usage AS (${usage}),
daily AS (
  SELECT s.id,
    list(CASE WHEN d.coverage <> 'missing' THEN CAST(coalesce(u.used, 0) AS VARCHAR) END ORDER BY d.day) AS values
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
    SELECT list({day: CAST(d.day AS VARCHAR), coverage: d.coverage,
      total: CASE WHEN d.coverage <> 'missing' THEN CAST(coalesce(t.used, 0) AS VARCHAR) END} ORDER BY d.day)
    FROM days AS d LEFT JOIN (${totals}) AS t ON t.day = d.day
  ) AS days`
