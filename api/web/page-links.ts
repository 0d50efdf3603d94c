import type { RankingsQuery } from '../datasets/query.ts'
import type { PageParameters } from './page-query.ts'

/** What a link of the page changes; null takes a parameter out. */
type Change = Readonly<Record<string, string | null>>

/** Addresses of the page and of its data, made from what the visitor sees now. */
export interface PageLinks {
  /** The page with `change`; it begins again at the first rank, unless the change says where. */
  readonly page: (change: Change) => string
  /** The same question put to the API. */
  readonly api: (format: string) => string
}

/** The links of a page. */
export function pageLinks({ parameters, days }: PageParameters, query: RankingsQuery): PageLinks {
  const kept: Record<string, string | undefined> = {
    sort: parameters.sort,
    category: parameters.category,
    subcategory: parameters.subcategory,
    days: days === undefined ? undefined : String(days),
    start_date: days === undefined ? parameters.start_date : undefined,
    end_date: parameters.end_date,
    limit: parameters.limit === undefined ? undefined : String(parameters.limit),
    as_of: parameters.as_of,
  }
  return {
    page: (change) => `/?${encode({ ...kept, ...change })}`,
    api: (format) =>
      `/api/v1/datasets/app-rankings?${encode({
        sort: query.sort,
        category: query.category,
        subcategory: query.subcategory,
        start_date: query.start,
        end_date: query.end,
        as_of: kept['as_of'],
        format,
      })}`,
  }
}

function encode(parameters: Readonly<Record<string, string | null | undefined>>): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [[name, value]],
  )
  return new URLSearchParams(given).toString()
}
