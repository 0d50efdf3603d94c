/** Reads a list with its series by day from one snapshot, in one statement. */
import { z } from 'zod'
import { FLOOR_DATE } from '../../pipeline/contract/calendar.ts'
import { COVERAGE_STATUSES, type CoverageStatus } from '../../pipeline/contract/dataset.ts'
import { MAX_OFFSET, REACHABLE_RANKS } from '../datasets/rankings.ts'
import { daysOf, windowBefore, windowUpTo, type DateWindow } from '../datasets/window.ts'
import type { Snapshot } from '../datasets/snapshots/facts.ts'
import { badRequest, invalid } from '../http/protocol/query-parameters.ts'
import { eachDay, missingDays, type List } from './parameters.ts'

/** An app or a model. */
export interface Item {
  /** app_id or model_permaslug. */
  readonly id: string
  readonly name: string
  readonly tags: readonly string[]
  /** Whether the filter lets it through; a drawn app may be outside. */
  readonly isListed: boolean
  /** Usage by day, from the first day of `ListData.days` on. */
  readonly daily: ReadonlyMap<string, bigint>
}

/** A row of the list. */
export interface Row extends Item {
  readonly rank: bigint
  readonly requests: bigint
  readonly tokens: bigint
  /** Tokens above the average of the three windows before; only in trending. */
  readonly excess: bigint | null
  /** Rank in the window before; null if it was not in that list. */
  readonly earlier: bigint | null
}

/** A day with the usage of everything that the filter lets through. */
export interface Day {
  readonly day: string
  readonly coverage: CoverageStatus
  readonly total: bigint
}

export interface ListData {
  readonly rows: readonly Row[]
  /** Drawn items that are not among the rows. */
  readonly others: readonly Item[]
  /** Number of ranks. */
  readonly ranks: number
  /** Whether the page can show further ranks. */
  readonly hasNext: boolean
  /** The days of the window, or the 30 days up to its end if that is more. */
  readonly days: readonly Day[]
  /** The window before and its missing days; ranks are compared if it has most of its days. */
  readonly earlier: { readonly window: DateWindow; readonly missing: number; readonly isCompared: boolean }
}

/** Days of the small chart of each row, and the least that are read. */
export const RECENT_DAYS = 30

const USAGE = `CAST(CASE WHEN $measure = 'requests' THEN d.requests
    ELSE CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT) END AS HUGEINT)`
const BETWEEN = (first: string, last: string) =>
  `d.day BETWEEN CAST($${first} AS DATE) AND CAST($${last} AS DATE)`

/** The parts of the statement that depend on the subject: each is a SELECT over the snapshot. */
interface Parts {
  /** All ranks of a window: rank, id, total_requests, total_tokens, excess. */
  readonly ranking: (first: string, last: string) => string
  /** Everything that may be drawn: id, name, tags, is_listed. */
  readonly items: string
  /** id, day, used of `shown`. */
  readonly usage: string
  /** day, used of all that the filter lets through; a part of the window without a filter costs no scan. */
  readonly totals: string
}

function partsOfApps({ sort, measure, category, subcategory }: List): Parts {
  const macro = measure === 'requests' ? 'popular_by_requests' : sort
  const filter = 'category := $category, subcategory := $subcategory'
  const hasNoFilter = category === null && subcategory === null
  const used = measure === 'requests' ? 'c.total_requests' : 'c.total_tokens'
  return {
    ranking: (first, last) => `
      SELECT rank, CAST(app_id AS VARCHAR) AS id, total_requests, CAST(total_tokens AS HUGEINT) AS total_tokens,
        CAST(${sort === 'trending' ? 'excess_tokens' : 'NULL'} AS HUGEINT) AS excess
      FROM ${macro}($${first}, $${last}, ${filter})`,
    items: `
      SELECT CAST(a.app_id AS VARCHAR) AS id, a.app_name AS name, a.subcategories AS tags,
        a.app_id IN (SELECT f.app_id FROM filtered_apps($category, $subcategory) AS f) AS is_listed
      FROM apps AS a`,
    usage: `
      SELECT CAST(d.app_id AS VARCHAR) AS id, d.day, ${USAGE} AS used FROM app_daily AS d
      WHERE ${BETWEEN('first', 'end')} AND d.app_id IN (SELECT CAST(s.id AS BIGINT) FROM shown AS s)`,
    totals: hasNoFilter
      ? `SELECT c.day, CAST(${used} AS HUGEINT) AS used FROM coverage AS c`
      : `SELECT d.day, sum(${USAGE}) AS used
      FROM app_daily AS d JOIN filtered_apps($category, $subcategory) AS f ON f.app_id = d.app_id
      WHERE ${BETWEEN('first', 'end')} GROUP BY d.day`,
  }
}

const MODELS: Parts = {
  ranking: (first, last) => `
    SELECT row_number() OVER (ORDER BY sum(${USAGE}) DESC, d.model_permaslug) AS rank, d.model_permaslug AS id,
      CAST(sum(d.requests) AS BIGINT) AS total_requests,
      sum(CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT)) AS total_tokens,
      CAST(NULL AS HUGEINT) AS excess
    FROM model_daily AS d
    WHERE ${BETWEEN(first, last)} AND d.model_permaslug <> 'other'
    GROUP BY d.model_permaslug HAVING sum(d.requests) > 0`,
  items: `
    SELECT DISTINCT m.model_permaslug AS id, m.model_permaslug AS name, CAST([] AS VARCHAR[]) AS tags,
      true AS is_listed
    FROM model_daily AS m`,
  usage: `
    SELECT d.model_permaslug AS id, d.day, ${USAGE} AS used FROM model_daily AS d
    WHERE ${BETWEEN('first', 'end')} AND d.model_permaslug IN (SELECT s.id FROM shown AS s)`,
  totals: `SELECT d.day, sum(${USAGE}) AS used FROM model_daily AS d WHERE ${BETWEEN('first', 'end')} GROUP BY d.day`,
}

const statement = ({ ranking, items, usage, totals }: Parts, isCompared: boolean) => `
WITH ranking AS MATERIALIZED (${ranking('start', 'end')}),
earlier AS (${
  isCompared
    ? ranking('earlier_start', 'earlier_end')
    : `SELECT CAST(NULL AS BIGINT) AS rank, '' AS id WHERE $earlier_start > $earlier_end`
}),
shown AS MATERIALIZED (
  SELECT i.*, r.total_requests, r.total_tokens, r.excess,
    CASE WHEN r.rank > $offset AND r.rank <= $offset + $limit THEN r.rank END AS rank
  FROM (${items}) AS i LEFT JOIN ranking AS r ON r.id = i.id
  WHERE (r.rank > $offset AND r.rank <= $offset + $limit) OR list_contains(string_split($drawn, ','), i.id)
),
daily AS (
  SELECT u.id, list({day: CAST(u.day AS VARCHAR), used: u.used}) AS days FROM (${usage}) AS u GROUP BY u.id
)
SELECT
  (SELECT count(*) FROM ranking) AS ranks,
  (
    SELECT list({id: s.id, name: s.name, tags: s.tags, isListed: s.is_listed, rank: s.rank,
      requests: s.total_requests, tokens: s.total_tokens, excess: s.excess, earlier: e.rank, daily: d.days
    } ORDER BY s.rank, s.id)
    FROM shown AS s LEFT JOIN daily AS d ON d.id = s.id LEFT JOIN earlier AS e ON e.id = s.id
  ) AS shown,
  (
    SELECT list({day: CAST(c.day AS VARCHAR), coverage: c.status, total: coalesce(t.used, 0)})
    FROM coverage AS c LEFT JOIN (${totals}) AS t ON t.day = c.day
    WHERE c.day BETWEEN CAST($first AS DATE) AND CAST($end AS DATE)
  ) AS days`

const usedOnDays = z
  .array(z.object({ day: z.string(), used: z.bigint() }))
  .nullable()
  .transform((days) => new Map(days?.map(({ day, used }) => [day, used])))
const resultSchema = z.tuple([
  z.object({
    ranks: z.bigint(),
    shown: z
      .array(
        z.object({
          id: z.string(),
          name: z.string(),
          tags: z.array(z.string()),
          isListed: z.boolean(),
          rank: z.bigint().nullable(),
          requests: z.bigint().nullable(),
          tokens: z.bigint().nullable(),
          excess: z.bigint().nullable(),
          earlier: z.bigint().nullable(),
          daily: usedOnDays,
        }),
      )
      .nullable(),
    days: z
      .array(z.object({ day: z.string(), coverage: z.enum(COVERAGE_STATUSES), total: z.bigint() }))
      .nullable(),
  }),
])

/**
 * Reads the rows of a list, what is drawn, and their usage by day.
 * @throws {ApiError} 400 if something drawn is not public, or the snapshot is too old for models or requests.
 */
export async function readList(snapshot: Snapshot, list: List): Promise<ListData> {
  const { start, end, limit, offset, measure, category, subcategory, drawn = [] } = list
  const window = windowBefore(list)
  const missing = missingDays(snapshot, window).length
  const earlier = { window, missing, isCompared: 2 * missing < daysOf(window) && window.end >= FLOOR_DATE }
  const recent = windowUpTo(end, RECENT_DAYS).start
  const first = start < recent ? start : recent
  const days = eachDay({ start: first, end })
  const parts = list.subject === 'apps' ? partsOfApps(list) : MODELS
  const values = {
    start,
    end,
    first,
    limit,
    offset,
    measure,
    drawn: drawn.join(','),
    earlier_start: window.start,
    earlier_end: window.end,
    ...(list.subject === 'apps' && { category, subcategory }),
  }
  const [result] = resultSchema.parse(await snapshot.query(statement(parts, earlier.isCompared), values))
  const shown = result.shown ?? []
  const unknown = drawn.filter((id) => !shown.some((item) => item.id === id))
  if (unknown.length > 0) {
    throw badRequest([invalid(list.subject, unknown.join(','), `public ${list.subject} of this snapshot`)])
  }
  const onDay = new Map(result.days?.map((day) => [day.day, day]))
  const ranks = Math.min(Number(result.ranks), REACHABLE_RANKS)
  return {
    rows: shown.flatMap(({ rank, requests, tokens, ...item }) =>
      rank === null ? [] : [{ ...item, rank, requests: requests ?? 0n, tokens: tokens ?? 0n }],
    ),
    others: shown.filter(({ rank }) => rank === null),
    ranks: Number(result.ranks),
    hasNext: offset + limit <= MAX_OFFSET && offset + limit < ranks,
    days: days.map((day) => onDay.get(day) ?? dayOf(day)),
    earlier,
  }
}

/** A day that the table coverage lacks. */
function dayOf(day: string): Day {
  return { day, coverage: 'missing', total: 0n }
}
