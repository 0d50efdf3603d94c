/** GET /datasets/app-rankings (CONTRACT 4): the top public apps by token usage inside a date window. */
import { z } from 'zod'
import {
  RANKING_COLUMNS,
  type RankingRow,
  rankingRowSchema,
  type Sort,
  SORTS,
} from '../../pipeline/contract/dataset.ts'
import {
  CATEGORIES,
  SUBCATEGORIES,
  subcategoriesOf,
  type Category,
  type Subcategory,
} from '../../pipeline/contract/taxonomy.ts'
import {
  invalidParameter,
  oneOf,
  wholeNumber,
  type ParameterTable,
  type Values,
} from '../http/query-parameters.ts'
import { RANKINGS_PATH } from '../paths.ts'
import { REPLY_PARAMETERS, type RowsOperation } from './reply.ts'
import type { Snapshot, SnapshotFacts } from './snapshots/facts.ts'
import { daysOf, resolveWindow, WINDOW_PARAMETERS, type DateWindow } from './window.ts'

const MAX_LIMIT = 100
const DEFAULT_LIMIT = 50
/** The largest offset; with the largest limit it bounds the reachable ranks. */
export const MAX_OFFSET = 100
/** The last rank on a page. */
const REACHABLE_RANKS = MAX_OFFSET + MAX_LIMIT

/** Every parameter with its check (CONTRACT 4.1). */
export const PARAMETERS = {
  category: oneOf(CATEGORIES, 'Only apps tagged with a subcategory inside this group.'),
  subcategory: oneOf(
    SUBCATEGORIES,
    'Only apps with this tag; it must belong to `category` if both are given.',
  ),
  sort: {
    ...oneOf(SORTS, '`popular` orders by tokens, `trending` by growth over the three preceding windows.'),
    default: SORTS[0],
  },
  ...WINDOW_PARAMETERS,
  limit: wholeNumber(1, MAX_LIMIT, DEFAULT_LIMIT, 'Rows of the page.'),
  offset: wholeNumber(0, MAX_OFFSET, 0, 'Ranked apps to skip.'),
  ...REPLY_PARAMETERS,
} as const satisfies ParameterTable

/** A query with defaults and clamps applied: equal requests give equal queries. */
export type RankingsQuery = DateWindow & {
  readonly sort: Sort
  readonly category: Category | null
  readonly subcategory: Subcategory | null
  readonly limit: number
  readonly offset: number
}

/**
 * Applies the rules of CONTRACT 4.1 to valid parameters.
 * @param parameters may give the window in days, as the page does.
 * @throws ApiError 400 if the window would start after its end, or the subcategory is not in the category.
 */
export function resolveQuery(
  parameters: Values<typeof PARAMETERS> & { readonly days?: number },
  snapshot: SnapshotFacts,
): RankingsQuery {
  const { category, subcategory, sort, limit, offset } = parameters
  const inside = category === undefined ? SUBCATEGORIES : subcategoriesOf(category)
  if (subcategory !== undefined && !inside.includes(subcategory)) {
    throw invalidParameter(
      'subcategory',
      subcategory,
      `with category ${category} one of ${inside.join(', ')}`,
    )
  }
  return {
    sort: sort ?? PARAMETERS.sort.default,
    // The subcategory takes precedence, so its group is redundant.
    category: subcategory === undefined ? (category ?? null) : null,
    subcategory: subcategory ?? null,
    ...resolveWindow(parameters, snapshot),
    limit: limit ?? PARAMETERS.limit.default,
    offset: offset ?? PARAMETERS.offset.default,
  }
}

export const RANKINGS = {
  path: RANKINGS_PATH,
  parameters: PARAMETERS,
  columns: RANKING_COLUMNS,
  maxOffset: MAX_OFFSET,
  resolve: resolveQuery,
  read: readRanking,
} satisfies RowsOperation<RankingsQuery>

/** The measure that orders each ranking. */
const MEASURES = { popular: 'total_tokens', trending: 'excess_tokens' } as const

/** Where a page is read: from all apps, or from the candidates. */
type Source = 'main' | 'fast'

/** The most tokens that an app that is no candidate may have in the window; null if all apps are candidates. */
const UPPER_BOUND = '(SELECT tokens FROM fast.upper_bound($start_date, $end_date, $category, $subcategory))'

// Totals are text, since they may exceed 2^63. The count is taken before the page is cut.
const PAGE = (sort: Sort, source: Source) => `
  SELECT app_id, app_name, rank, total_requests, CAST(total_tokens AS VARCHAR) AS total_tokens, apps,
    CAST(${MEASURES[sort]} AS VARCHAR) AS measure,
    CAST(${source === 'fast' ? UPPER_BOUND : 'NULL'} AS VARCHAR) AS bound
  FROM (
    SELECT *, count(*) OVER () AS apps
    FROM ${source}.${sort}($start_date, $end_date, category := $category, subcategory := $subcategory)
  )
  WHERE rank > $offset AND rank <= $offset + $limit
  ORDER BY rank`

const digits = z.string().regex(/^\d+$/)
const pageSchema = z.array(
  rankingRowSchema.extend({ measure: digits, apps: z.bigint(), bound: digits.nullable() }),
)

/** Rows of a page, each with its measure, tokens or excess tokens, the number of ranks, and the upper bound. */
type Page = z.infer<typeof pageSchema>

/** Reads one page of a ranking by the macros of the snapshot; `total` is the number of reachable ranks. */
export async function readRanking(
  snapshot: Snapshot,
  query: RankingsQuery,
): Promise<{ readonly rows: readonly RankingRow[]; readonly total: number }> {
  const page =
    (await readCandidates(snapshot, query, REACHABLE_RANKS)) ?? (await readPage(snapshot, query, 'main'))
  // An empty page does not show the number of ranks before it.
  const isBeyond = page.length === 0 && query.offset > 0
  const [first] = isBeyond ? await readPage(snapshot, { ...query, limit: 1, offset: 0 }, 'main') : page
  return {
    rows: page.map(({ measure: _measure, apps: _apps, bound: _bound, ...row }) => row),
    total: Math.min(Number(first?.apps ?? 0), REACHABLE_RANKS),
  }
}

/**
 * Windows of up to this many rows of app_daily are read from all apps at once. Growth over few days is small, so the
 * candidates often cannot prove the page, and a useless query should cost little in comparison.
 */
const FEW_ROWS: Readonly<Record<Sort, number>> = { popular: 25_000, trending: 150_000 }

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
  const isSmall = snapshot.rows_per_day * daysOf(query) <= FEW_ROWS[query.sort]
  if (!snapshot.has_candidates || isSmall) return undefined
  const page = await readPage(snapshot, query, 'fast')
  // An empty page does not show the bound.
  if (page[0]?.bound === null) return page
  const last = page[query.limit - 1]
  if (last === undefined || last.bound === null || last.apps < ranks) return undefined
  return BigInt(last.measure) > BigInt(last.bound) ? page : undefined
}

/** Reads the page from all apps or from the candidates. */
export async function readPage(
  { query }: Snapshot,
  { sort, ...values }: RankingsQuery,
  source: Source,
): Promise<Page> {
  return pageSchema.parse(await query(PAGE(sort, source), values))
}
