import { APPS_PATH } from '../../paths.ts'
import { address } from '../addresses.ts'
import type { PageParameters } from './page-query.ts'

/** Changed parameters of a link; null removes one. */
type Change = Readonly<Record<string, string | null>>

/** Addresses derived from the current page. */
export interface PageLinks {
  /** The page with `change`; it starts at the first rank unless `change` has an offset. */
  readonly page: (change: Change) => string
  /** The page of an app, from the same snapshot. */
  readonly app: (id: bigint) => string
  /** The rows of the page as a file. */
  readonly file: (format: 'csv' | 'json') => string
  /** The chart of the page as a picture. */
  readonly chart: (format: 'svg' | 'png') => string
  /** The picture of the first ranks, for link previews. */
  readonly card: string
}

export function pageLinks({ parameters, days, by }: PageParameters): PageLinks {
  const kept: Record<string, string | undefined> = {
    sort: parameters.sort,
    by,
    category: parameters.category,
    subcategory: parameters.subcategory,
    days: days === undefined ? undefined : String(days),
    start_date: days === undefined ? parameters.start_date : undefined,
    end_date: parameters.end_date,
    limit: parameters.limit === undefined ? undefined : String(parameters.limit),
    as_of: parameters.as_of,
  }
  const all = {
    ...kept,
    offset: parameters.offset === undefined ? undefined : String(parameters.offset),
  }
  return {
    page: (change) => address('/', { ...kept, ...change }),
    app: (id) => address(`${APPS_PATH}/${id}`, { as_of: parameters.as_of }),
    file: (format) => address(`/rankings.${format}`, all),
    chart: (format) => address(`/chart.${format}`, all),
    card: address('/card.png', all),
  }
}
