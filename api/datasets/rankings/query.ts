import type { Sort } from '../../../pipeline/contract/dataset.ts'
import type { Category, Subcategory } from '../../../pipeline/contract/taxonomy.ts'
import { badRequest, invalid } from '../../http/protocol/query-parameters.ts'
import type { SnapshotFacts } from '../snapshots/open-snapshot.ts'
import { PARAMETERS, type Parameters } from './parameters.ts'
import { resolveWindow, type DateWindow } from './window.ts'

/** What is answered once defaults and clamps are applied: requests that mean the same resolve to the same. */
export type RankingsQuery = DateWindow & {
  readonly sort: Sort
  readonly category: Category | null
  readonly subcategory: Subcategory | null
  readonly limit: number
  readonly offset: number
}

/**
 * Applies the rules of CONTRACT 4.1 to parameters that are valid one by one.
 * @throws {ApiError} 400 when the window would start after it ends.
 */
export function resolveQuery(parameters: Parameters, dataThrough: string): RankingsQuery {
  const { category, subcategory, sort, limit, offset } = parameters
  return {
    ...requireWindow(parameters, dataThrough),
    sort: sort ?? PARAMETERS.sort.default,
    // The subcategory takes precedence, and the group it belongs to adds nothing.
    category: subcategory === undefined ? (category ?? null) : null,
    subcategory: subcategory ?? null,
    limit: limit ?? PARAMETERS.limit.default,
    offset: offset ?? PARAMETERS.offset.default,
  }
}

/**
 * The window that is answered.
 * @throws {ApiError} 400 when it would start after it ends.
 */
export function requireWindow(
  asked: Pick<Parameters, 'start_date' | 'end_date'>,
  dataThrough: string,
): DateWindow {
  const { start, end } = resolveWindow(asked, dataThrough)
  if (start > end) throw badRequest([invalid('start_date', start, `a date not after the end, ${end}`)])
  return { start, end }
}

/** Whether a snapshot knows the filter of a query; no app is in a category that its taxonomy lacks. */
export function hasFilter(
  { categories }: Pick<SnapshotFacts, 'categories'>,
  { category, subcategory }: Pick<RankingsQuery, 'category' | 'subcategory'>,
): boolean {
  const wanted = subcategory ?? category
  return wanted === null || categories.has(wanted)
}
