import type { Sort } from '../../../pipeline/contract/dataset.ts'
import type { Category, Subcategory } from '../../../pipeline/contract/taxonomy.ts'
import type { SnapshotFacts } from '../snapshots/facts.ts'
import { PARAMETERS, type Parameters } from './parameters.ts'
import { resolveWindow, type DateWindow } from './window.ts'

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
 * @throws {ApiError} 400 if the window would start after its end.
 */
export function resolveQuery(
  parameters: Parameters & { readonly days?: number | undefined },
  dataThrough: string,
): RankingsQuery {
  const { category, subcategory, sort, limit, offset } = parameters
  return {
    ...resolveWindow(parameters, dataThrough),
    sort: sort ?? PARAMETERS.sort.default,
    // The subcategory takes precedence, so its group is redundant.
    category: subcategory === undefined ? (category ?? null) : null,
    subcategory: subcategory ?? null,
    limit: limit ?? PARAMETERS.limit.default,
    offset: offset ?? PARAMETERS.offset.default,
  }
}

/** Whether a snapshot has the filter of a query; a category missing in its taxonomy has no apps. */
export function hasFilter(
  { categories }: Pick<SnapshotFacts, 'categories'>,
  { category, subcategory }: Pick<RankingsQuery, 'category' | 'subcategory'>,
): boolean {
  const wanted = subcategory ?? category
  return wanted === null || categories.has(wanted)
}
