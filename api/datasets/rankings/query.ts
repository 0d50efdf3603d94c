import type { Sort } from '../../../pipeline/contract/dataset.ts'
import type { Category, Subcategory } from '../../../pipeline/contract/taxonomy.ts'
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
 * @param parameters may give the window in days, as the page does.
 * @throws {ApiError} 400 when the window would start after it ends.
 */
export function resolveQuery(
  parameters: Parameters & { readonly days?: number | undefined },
  dataThrough: string,
): RankingsQuery {
  const { category, subcategory, sort, limit, offset } = parameters
  return {
    ...resolveWindow(parameters, dataThrough),
    sort: sort ?? PARAMETERS.sort.default,
    // The subcategory takes precedence, and the group it belongs to adds nothing.
    category: subcategory === undefined ? (category ?? null) : null,
    subcategory: subcategory ?? null,
    limit: limit ?? PARAMETERS.limit.default,
    offset: offset ?? PARAMETERS.offset.default,
  }
}

/** Whether a snapshot knows the filter of a query; no app is in a category that its taxonomy lacks. */
export function hasFilter(
  { categories }: Pick<SnapshotFacts, 'categories'>,
  { category, subcategory }: Pick<RankingsQuery, 'category' | 'subcategory'>,
): boolean {
  const wanted = subcategory ?? category
  return wanted === null || categories.has(wanted)
}
