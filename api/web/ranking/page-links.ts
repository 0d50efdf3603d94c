import { APPS_PATH } from '../../paths.ts'
import type { PageParameters } from './page-query.ts'

/** What a link of the page changes; null takes a parameter out. */
type Change = Readonly<Record<string, string | null>>

/** Addresses of the page, made from what the visitor sees now. */
export interface PageLinks {
  /** The page with `change`; it begins again at the first rank, unless the change says where. */
  readonly page: (change: Change) => string
  /** The page of an app, from the same snapshot. */
  readonly app: (id: bigint) => string
  /** The rows of the page as a file. */
  readonly file: (format: 'csv' | 'json') => string
  /** The chart of the page as a picture. */
  readonly chart: (format: 'svg' | 'png') => string
  /** The first of the page as a picture. */
  readonly card: string
}

/** The links of a page. */
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
  const query = encode({
    ...kept,
    offset: parameters.offset === undefined ? undefined : String(parameters.offset),
  })
  const search = query === '' ? '' : `?${query}`
  const pinned = parameters.as_of === undefined ? '' : `?${encode({ as_of: parameters.as_of })}`
  return {
    page: (change) => `/?${encode({ ...kept, ...change })}`,
    app: (id) => `${APPS_PATH}/${id}${pinned}`,
    file: (format) => `/rankings.${format}${search}`,
    chart: (format) => `/chart.${format}${search}`,
    card: `/card.png${search}`,
  }
}

function encode(parameters: Readonly<Record<string, string | null | undefined>>): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [[name, value]],
  )
  return new URLSearchParams(given).toString()
}
