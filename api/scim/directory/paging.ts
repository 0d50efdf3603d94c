/** The ways in which a list of groups can be requested, from the best to the plainest. */
import type { Query } from './http/client.ts'
import type { PagingOffer } from './messages.ts'

/** Sizes of pages that follow where a directory refuses a larger one, or where a larger one has too many bytes. */
const SMALLER_PAGES = [50, 10, 2]

export interface PagingOptions {
  readonly offer: PagingOffer
  /** Rows of a page that this service would like. */
  readonly pageSize: number
  /** Whether members are wanted with the groups. */
  readonly withMembers: boolean
}

/** The queries of a first page. */
export function waysToList({ offer, pageSize, withMembers }: PagingOptions): Query[] {
  const largest = Math.min(pageSize, offer.maxPage ?? pageSize)
  const sizes = [largest, ...SMALLER_PAGES.filter((size) => size < largest)].map(String)
  const cursor = [...sizes.map((count) => ({ cursor: '', count })), { cursor: '' }]
  const index = [...sizes.map((count) => ({ startIndex: '1', count })), { startIndex: '1' }]
  // Some page by cursor and do not say so: only when requests by index fail is that tried.
  const ways: Query[] = offer.cursor ? [...cursor, ...index, {}] : [...index, ...cursor.slice(0, 1), {}]
  return withMembers ? ways : ways.flatMap((way) => [{ ...way, excludedAttributes: 'members' }, way])
}

/** The query of the page behind one; undefined where there is none. */
export function nextQuery(
  query: Query,
  { nextCursor, rows }: { readonly nextCursor: string | undefined; readonly rows: number },
): Query | undefined {
  if (nextCursor !== undefined) {
    const { startIndex: _dropped, ...rest } = query
    return { ...rest, cursor: nextCursor }
  }
  return 'startIndex' in query ? { ...query, startIndex: String(rows + 1) } : undefined
}
