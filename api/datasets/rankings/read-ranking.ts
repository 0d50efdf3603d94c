/** Reads a page of a ranking by the macros of the snapshot. */
import { z } from 'zod'
import { rankingRowSchema, type RankingRow, type Sort } from '../../../pipeline/contract/dataset.ts'
import { hasFilter, type RankingsQuery } from './query.ts'
import type { Snapshot } from '../snapshots/facts.ts'
import { REACHABLE_RANKS } from './parameters.ts'
import { daysOf } from './window.ts'

/** The measure that orders each ranking. */
const MEASURES = {
  popular: 'total_tokens',
  trending: 'excess_tokens',
} as const

// Totals are text, since they may exceed 2^63. The count is taken before the page is cut.
const PAGE = (ranking: keyof typeof MEASURES, schema: 'main' | 'fast') => `
  SELECT app_id, app_name, rank, total_requests, CAST(total_tokens AS VARCHAR) AS total_tokens,
    CAST(${MEASURES[ranking]} AS VARCHAR) AS measure, apps
  FROM (
    SELECT *, count(*) OVER () AS apps
    FROM ${schema}.${ranking}($start, $end, category := $category, subcategory := $subcategory)
  )
  WHERE rank > $offset AND rank <= $offset + $limit
  ORDER BY rank`

const UPPER_BOUND =
  'SELECT CAST(tokens AS VARCHAR) AS tokens FROM fast.upper_bound($start, $end, $category, $subcategory)'

const digits = z.string().regex(/^\d+$/)
const pageSchema = z.array(rankingRowSchema.extend({ measure: digits, apps: z.bigint() }))
const boundSchema = z.tuple([z.object({ tokens: digits.nullable() })])

type Page = z.infer<typeof pageSchema>

type MeasuredRow = RankingRow & { readonly measure: string }

/** One page of a ranking. */
interface RankingPage<Row> {
  readonly rows: readonly Row[]
  /** Number of ranks over all pages. */
  readonly total: number
}

/** Reads one page of a ranking. */
export async function readRanking(
  snapshot: Snapshot,
  query: RankingsQuery,
): Promise<RankingPage<RankingRow>> {
  const { rows, total } = await readMeasuredRanking(snapshot, query)
  // An empty page does not show the number of ranks before it.
  const isBeyond = rows.length === 0 && query.offset > 0
  return {
    rows: rows.map(({ measure: _measure, ...row }) => row),
    total: isBeyond ? (await readMeasuredRanking(snapshot, { ...query, limit: 1, offset: 0 })).total : total,
  }
}

/**
 * Reads one page of a ranking with its `measure`, tokens or excess tokens. The candidates are enough if they prove the
 * page; otherwise all apps are read.
 */
async function readMeasuredRanking(
  snapshot: Snapshot,
  query: RankingsQuery,
): Promise<RankingPage<MeasuredRow>> {
  if (!hasFilter(snapshot, query)) return { rows: [], total: 0 }
  return pageOf(
    (await readCandidates(snapshot, query, REACHABLE_RANKS)) ?? (await readPage(snapshot, query, 'main')),
  )
}

function pageOf(page: Page): RankingPage<MeasuredRow> {
  return {
    rows: page.map(({ apps: _apps, ...row }) => row),
    total: Math.min(Number(page[0]?.apps ?? 0), REACHABLE_RANKS),
  }
}

/**
 * Reads the page from the candidates alone; undefined if that does not prove it. No other app has more tokens than the
 * upper bound, and an excess is at most an app's tokens. So the page is correct if its last row is above the bound.
 * @param ranks required number of ranks, unless all apps are candidates: more of them do not change the reply.
 */
export async function readCandidates(
  snapshot: Snapshot,
  query: RankingsQuery,
  ranks: number,
): Promise<Page | undefined> {
  if (!snapshot.contents.has('fast.prefix_sums') || isSmall(snapshot, query)) return undefined
  const [page, bound] = await Promise.all([
    readPage(snapshot, query, 'fast'),
    readUpperBound(snapshot, query),
  ])
  if (bound === undefined) return page
  const last = page[query.limit - 1]
  return last !== undefined && last.apps >= ranks && BigInt(last.measure) > bound ? page : undefined
}

/**
 * Windows of up to this many rows of app_daily are read from all apps at once. Growth over few days is small, so the
 * candidates often cannot prove the page, and a useless query should cost little in comparison.
 */
const FEW_ROWS: Readonly<Record<Sort, number>> = { popular: 25_000, trending: 150_000 }

function isSmall({ rowsPerDay }: Snapshot, query: RankingsQuery): boolean {
  return rowsPerDay * daysOf(query) <= FEW_ROWS[query.sort]
}

/** Reads the page from all apps (`main`) or from the candidates (`fast`). */
export async function readPage(
  { query }: Snapshot,
  { sort, ...values }: RankingsQuery,
  schema: 'main' | 'fast',
): Promise<Page> {
  return pageSchema.parse(await query(PAGE(sort, schema), values))
}

/** The most tokens that an app outside the candidates may have in the window; undefined if there is no such app. */
export async function readUpperBound(
  { query }: Snapshot,
  { start, end, category, subcategory }: RankingsQuery,
): Promise<bigint | undefined> {
  const [{ tokens }] = boundSchema.parse(await query(UPPER_BOUND, { start, end, category, subcategory }))
  return tokens === null ? undefined : BigInt(tokens)
}
